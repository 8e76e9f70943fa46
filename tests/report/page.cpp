// SPDX-License-Identifier: BSL-1.0
//
// The HTML page as text, and traces. That the page works is tested in a browser: html_check.py.
#include <regex>

#include "catch.hpp"

#include <pipe/report/html.hpp>
#include <pipe/report/trace.hpp>
#include "report/tables.hpp"

namespace {

std::size_t count(std::string const& text, std::string const& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++n;
  return n;
}

/// The events of a trace of one phase, a line each.
std::vector<std::string> events(std::string const& trace, char phase) {
  std::vector<std::string> found;
  std::regex const line(std::string("\\{\"ph\":\"") + phase + "\"[^\n]*");
  for (std::sregex_iterator i(trace.begin(), trace.end(), line), end; i != end; ++i)
    found.push_back(i->str());
  return found;
}
/// A time of an event in nanoseconds.
long time_of(std::string const& event, char const* name) {
  std::smatch found;
  REQUIRE(std::regex_search(
      event, found, std::regex(std::string("\"") + name + "\":([0-9]+)(?:\\.([0-9]{3}))?")));
  return 1000 * std::stol(found[1]) + (found[2].matched ? std::stol(found[2]) : 0);
}
long number_of(std::string const& event, char const* name) {
  std::smatch found;
  REQUIRE(std::regex_search(event, found, std::regex(std::string("\"") + name + "\":([0-9]+)")));
  return std::stol(found[1]);
}

pp::drawings::drawing with_details() {
  pp::drawings::drawing d = tables::draw(pp::schedules::placement::vee);
  pp::detail::drawn_action const first = d.at(0, 0);
  d.ranks[0].details = {{"one \"kernel\"", first.start, first.start + 100},
                        {"two", first.start + 100, first.end}};
  return d;
}

}  // namespace

TEST_CASE("a page is one file that loads nothing") {
  std::string const page =
      pp::drawings::as_html(tables::draw(pp::schedules::placement::loop), with_details());
  CHECK(page.find("default-src 'none'") != page.npos);
  for (char const* loads :
       {"http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"})
    CHECK(page.find(loads) == page.npos);
}

TEST_CASE("a page without a drawing is refused") {
  CHECK_THROWS_WITH(pp::drawings::as_html(std::vector<pp::drawings::drawing const*>()),
                    "as_html: expected at least 1 drawing, got none");
}

TEST_CASE("no name ends the script or becomes markup") {
  pp::detail::drawing_words const words{"</script><script>alert(1)</script><!--", "<i>", "&amp;"};
  std::string const page =
      pp::drawings::as_html(tables::draw(pp::schedules::placement::loop, words));
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script") == 2);
  CHECK(count(page, "<!--") == 0);
  CHECK(page.find("alert(1)") != page.npos);  // as text
  CHECK(page.find("<title>&lt;/script&gt;&lt;script&gt;") != page.npos);
}

TEST_CASE("a page has every action of every drawing") {
  pp::drawings::drawing const d = tables::draw(pp::schedules::placement::vee);
  std::string const page = pp::drawings::as_html(d, with_details());
  for (pp::detail::drawn_rank const& r : d.ranks) {
    std::string const all = pp::detail::page_rank(r);
    CHECK(count(page, all.substr(0, all.find("]"))) == 2);
  }
  CHECK(page.find(
            "{\"name\":\"one \\\"kernel\\\"\",\n\"start\":0,\n\"end\":100},{\"name\":\"two\"") !=
        page.npos);
}

TEST_CASE("a prediction in another unit is stretched until it computes as long") {
  pp::drawings::drawing const measured = tables::draw(pp::schedules::placement::loop);
  pp::drawings::drawing predicted =
      tables::draw(pp::schedules::placement::loop, {"predicted", "FLOP", "B"});
  for (pp::detail::drawn_rank& r : predicted.ranks)
    for (pp::detail::drawn_action& a : r.actions) a.start *= 4, a.end *= 4;
  CHECK(count(pp::drawings::as_html(predicted, measured), "\"scale\":0.25,") == 1);
  pp::drawings::drawing twice = measured;  // two replicas compute twice as much
  for (int copy = 0; copy < 3; ++copy) twice.ranks.push_back(twice.ranks[std::size_t(copy)]);
  twice.replicas = 2;
  CHECK(count(pp::drawings::as_html(predicted, twice), "\"scale\":0.25,") == 1);
  predicted.words.time_unit = "ns";
  CHECK(count(pp::drawings::as_html(predicted, measured), "\"scale\":1,") == 2);
}

TEST_CASE("a trace has a track per rank with its actions") {
  pp::drawings::drawing const d = tables::draw(pp::schedules::placement::loop);
  std::string const trace = pp::drawings::as_trace(d, with_details());
  CHECK(count(trace, "\"process_name\"") == 2);
  CHECK(count(trace, "\"thread_name\"") == 2 * d.ranks.size());
  CHECK(events(trace, 'X').size() == 2 * tables::actions(d) + 2);
  std::size_t points = 0;
  for (pp::detail::drawn_rank const& r : d.ranks) points += r.memory.size();
  CHECK(events(trace, 'C').size() == 2 * points);
}

TEST_CASE("slices of a track nest") {
  std::vector<std::pair<long, long>> open;
  long process = 0, track = -1, depth = 0;
  for (std::string const& e : events(pp::drawings::as_trace(with_details(), with_details()), 'X')) {
    if (number_of(e, "pid") != process || number_of(e, "tid") != track) open.clear();
    process = number_of(e, "pid"), track = number_of(e, "tid");
    long const start = time_of(e, "ts"), end = start + time_of(e, "dur");
    while (!open.empty() && open.back().second <= start) open.pop_back();
    INFO(e);
    CHECK((open.empty() || (open.back().first <= start && end <= open.back().second)));
    open.push_back({start, end});
    depth = std::max(depth, long(open.size()));
  }
  CHECK(depth == 2);
}

TEST_CASE("arrows lead from a slice to a later one") {
  pp::drawings::drawing const d = tables::draw(pp::schedules::placement::vee);
  std::string const trace = pp::drawings::as_trace(d);
  auto const from = events(trace, 's'), to = events(trace, 'f');
  REQUIRE(from.size() == d.transfers.size());
  REQUIRE(to.size() == d.transfers.size());
  auto const in_a_slice = [&](std::string const& event) {
    long const time = time_of(event, "ts");
    for (pp::detail::drawn_action const& a : d.ranks[std::size_t(number_of(event, "tid"))].actions)
      if (a.start <= time && time < a.end) return true;
    return false;
  };
  for (std::size_t i = 0; i < from.size(); ++i) {
    INFO(from[i]);
    CHECK(number_of(from[i], "id") == number_of(to[i], "id"));
    CHECK(number_of(from[i], "tid") != number_of(to[i], "tid"));
    CHECK(time_of(from[i], "ts") < time_of(to[i], "ts"));
    CHECK(in_a_slice(from[i]));
    CHECK(in_a_slice(to[i]));
  }
}

TEST_CASE("an arrow goes forward where clocks of two processes disagree") {
  pp::drawings::drawing d = tables::draw(pp::schedules::placement::loop);
  pp::detail::drawn_transfer const t = d.transfers[0];
  auto& from = d.ranks[std::size_t(t.from_rank)].actions[std::size_t(t.from)];
  auto& to = d.ranks[std::size_t(t.to_rank)].actions[std::size_t(t.to)];
  to.start = from.start - 20, to.end = from.start + 30;
  std::string const trace = pp::drawings::as_trace(d);
  CHECK(time_of(events(trace, 's')[0], "ts") == from.start);
  CHECK(time_of(events(trace, 'f')[0], "ts") == from.start);
  to.end = from.start - 10;  // by more than the whole action: both ends stay in their slices
  CHECK(time_of(events(pp::drawings::as_trace(d), 'f')[0], "ts") == to.end - 1);
}

TEST_CASE("times of a trace are exact") {
  pp::drawings::drawing d;
  d.words.time_unit = "ns";
  d.ranks.resize(1);
  d.ranks[0].actions.push_back({{}, 1'234'567, 3'000'000'000'000'005, 0, false});
  CHECK(pp::drawings::as_trace(d).find(
            "\"ts\":1234.567,\"name\":\"F0\",\"dur\":2999999998765.438,") != std::string::npos);
  d.words.time_unit = "";
  d.ranks[0].actions = {{{}, 7, 9, 0, false}};
  CHECK(pp::drawings::as_trace(d).find("\"ts\":7,\"name\":\"F0\",\"dur\":2,") != std::string::npos);
}
