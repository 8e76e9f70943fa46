// SPDX-License-Identifier: BSL-1.0
//
// Pictures are well-formed, complete and to scale.
#include <cmath>
#include <map>
#include <regex>

#include "catch.hpp"

#include <pipe/base/real_text.hpp>
#include <pipe/report/svg.hpp>
#include "report/tables.hpp"

namespace {

struct element {
  std::string name;
  std::map<std::string, std::string> attributes;
  double operator[](char const* attribute) const {
    double x = 0;
    REQUIRE(pp::detail::read_real(attributes.at(attribute), x));
    return x;
  }
};

/// The elements of an XML text in order, each begun at its place; fails where the text is not
/// well-formed.
std::vector<element> elements_of(std::string const& text) {
  std::vector<element> found;
  std::vector<std::string> open;
  std::regex const tag("<(/?)([A-Za-z]+)((?: [A-Za-z0-9:-]+=\"[^\"<]*\")*)(/?)>"),
      pair("([A-Za-z0-9:-]+)=\"([^\"]*)\"");
  std::regex const between("(?:[^<>&]|&(?:amp|lt|gt|quot|#39);)*");
  std::size_t at = 0;
  for (std::sregex_iterator i(text.begin(), text.end(), tag), end; i != end; ++i) {
    INFO(i->str());
    REQUIRE(std::regex_match(text.substr(at, std::size_t(i->position()) - at), between));
    at = std::size_t(i->position() + i->length());
    if (!(*i)[1].str().empty()) {
      REQUIRE_FALSE(open.empty());
      REQUIRE(open.back() == (*i)[2].str());
      open.pop_back();
      continue;
    }
    element e{(*i)[2].str(), {}};
    std::string const attributes = (*i)[3].str();
    for (std::sregex_iterator a(attributes.begin(), attributes.end(), pair); a != end; ++a)
      REQUIRE(e.attributes.emplace((*a)[1].str(), (*a)[2].str()).second);
    if ((*i)[4].str().empty()) open.push_back(e.name);
    found.push_back(e);
  }
  REQUIRE(open.empty());
  REQUIRE(text.substr(at) == "\n");
  return found;
}

bool is_action(element const& e) {
  if (e.name != "rect" || !e.attributes.count("class")) return false;
  std::string const& style = e.attributes.at("class");
  return style.size() > 1 && std::isupper(style[0]) && std::isdigit(style.back());
}

}  // namespace

TEST_CASE("every action is a box in its row, as wide as it is long") {
  for (pp::schedules::placement const where :
       {pp::schedules::placement::loop, pp::schedules::placement::vee}) {
    pp::drawings::drawing const d = tables::draw(where);
    std::vector<element> const all = elements_of(pp::drawings::as_svg(d, {.width = 900}));
    std::vector<element> rows;
    std::size_t boxes = 0;
    double busy = 0;
    for (element const& e : all) {
      if (e.attributes.count("class") && e.attributes.at("class") == "idle" && e["width"] > 100)
        rows.push_back(e);
      if (!is_action(e)) continue;
      ++boxes;
      element const& row = rows.back();
      CHECK(e["x"] >= row["x"] - 0.01);
      CHECK(e["x"] + e["width"] <= row["x"] + row["width"] + 0.02);
      CHECK(e["y"] == row["y"]);
      CHECK(e["height"] == row["height"]);
      if (e.attributes.at("class")[0] != 'U') busy += e["width"];
    }
    CHECK(rows.size() == d.ranks.size());
    CHECK(boxes == tables::actions(d));
    long sum = 0;
    for (pp::detail::drawn_rank const& r : d.ranks) sum += r.busy();
    double const expected = double(sum) / double(d.makespan) * rows[0]["width"];
    CHECK(std::abs(busy - expected) < 0.01 * double(boxes));
  }
}

TEST_CASE("numbers of micro-batches stand in boxes that have room for them") {
  auto const question = pp::schedules::equal_times(2, 12);
  auto const table = pp::schedules::make_table<pp::OneFOneB, 2, 12>(question);
  pp::drawings::drawing const d =
      pp::drawings::of_table(question, table, pp::schedules::simulate(question, table));
  auto const numbers = [&](int width) {
    std::string const text = pp::drawings::as_svg(d, {.width = width, .memory = false});
    std::regex const label("<text x=\"[0-9.]+\" y=\"[0-9.]+\">[0-9]+</text>");
    return std::distance(std::sregex_iterator(text.begin(), text.end(), label), {});
  };
  CHECK(numbers(1200) == 2 * 24);
  CHECK(numbers(400) < 2 * 24);
}

TEST_CASE("numbers that are too wide for a box are written small, and then left out") {
  auto const question = pp::schedules::equal_times(1, 20);
  auto const table = pp::schedules::make_table<pp::GPipe, 1, 20>(question);
  pp::drawings::drawing const d =
      pp::drawings::of_table(question, table, pp::schedules::simulate(question, table));
  auto const numbers = [&](int width, std::string const& style) {
    std::string const text = pp::drawings::as_svg(d, {.width = width, .memory = false});
    std::regex const label("<text" + style + " x=\"[0-9.]+\" y=\"[0-9.]+\">[0-9]+</text>");
    return std::distance(std::sregex_iterator(text.begin(), text.end(), label), {});
  };
  CHECK(numbers(1200, "") == 2 * 20);
  CHECK(numbers(800, "") == 10 + 20);  // a backward is twice as wide
  CHECK(numbers(800, " class=\"small\"") == 10);
  CHECK(numbers(450, "") == 10);
  CHECK(numbers(450, " class=\"small\"") == 10);
}

TEST_CASE("no text leaves the picture, and texts of the legend are apart") {
  // An upper bound of a character's width, by style: the bold title has 15 pixels.
  auto const width_of = [](std::string const& style, std::string const& words) {
    return (style == "title" ? 10.5 : style == "small" ? 5.2 : 6.8) * double(words.size());
  };
  auto const check = [&](pp::drawings::drawing const& d, int width) {
    std::string const text = pp::drawings::as_svg(d, {.width = width, .critical = true});
    std::regex const words(
        "<text( class=\"([a-z ]+)\")? x=\"([0-9.]+)\" y=\"([0-9.]+)\"( "
        "text-anchor=\"([a-z]+)\")?>([^<]*)</text>"),
        size("viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\"");
    std::smatch box;
    REQUIRE(std::regex_search(text, box, size));
    auto const real = [](std::string const& digits) {
      double x = 0;
      REQUIRE(pp::detail::read_real(digits, x));
      return x;
    };
    double const right = real(box[1]), bottom = real(box[2]);
    CHECK(right == width);
    double end = 0, line = 0;
    std::size_t texts = 0;
    for (std::sregex_iterator i(text.begin(), text.end(), words), none; i != none; ++i, ++texts) {
      std::smatch const& m = *i;
      INFO(m.str());
      double const wide = width_of(m[2], m[7]), x = real(m[3]), y = real(m[4]);
      std::string const anchor = m[6].matched ? m[6].str() : "middle";
      double const from = anchor == "start" ? x : anchor == "end" ? x - wide : x - wide / 2;
      CHECK(from >= 0);
      CHECK(from + wide <= right);
      CHECK((y >= 9 && y <= bottom - 3));
      if (m[2] != "note" || anchor != "start" || y < 60) continue;
      CHECK((y != line || from > end + 18));  // room for the key
      end = from + wide, line = y;
    }
    CHECK(texts > 20);
    CHECK(text.find(">critical path<") != text.npos);
  };
  pp::schedules::problem<> const pairs{2, 2, 12, 0, {{2, 2, 2, {}, 0, 1}}};
  auto const paired = pp::schedules::make_dynamic_table<pp::Paired<pp::EagerOneFOneB>>(pairs);
  for (int const width : {400, 700, 1000}) {
    check(pp::drawings::of_table(pairs, paired, pp::schedules::simulate(pairs, paired)), width);
    check(tables::draw(pp::schedules::placement::vee), width);
    check(tables::draw(pp::schedules::placement::loop), width);
  }
}

TEST_CASE("memory curves differ without colours, too") {
  pp::drawings::drawing const d = tables::draw(pp::schedules::placement::loop);
  std::vector<std::string> dashes;
  for (element const& e : elements_of(pp::drawings::as_svg(d)))
    if (e.attributes.count("class") && e.attributes.at("class") == "curve")
      dashes.push_back(e.attributes.count("stroke-dasharray") ? e.attributes.at("stroke-dasharray")
                                                              : "solid");
  REQUIRE(dashes.size() == 6);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(dashes[rank] == dashes[rank + 3]);  // the legend's, and the curve's
    CHECK(dashes[rank] != dashes[(rank + 1) % 3]);
  }
  CHECK(dashes[0] == "solid");  // and painted first, so that the others are seen on it
}

TEST_CASE("options show what they name") {
  pp::drawings::drawing const d = tables::draw(pp::schedules::placement::vee);
  auto const count = [&](pp::drawings::svg_options const& o, std::string const& style) {
    auto const all = elements_of(pp::drawings::as_svg(d, o));
    return std::count_if(all.begin(), all.end(), [&](element const& e) {
      return e.attributes.count("class") && e.attributes.at("class") == style;
    });
  };
  long critical = 0;
  for (pp::detail::drawn_rank const& r : d.ranks)
    for (pp::detail::drawn_action const& a : r.actions) critical += a.critical;
  CHECK(count({}, "critical") == 0);
  CHECK(count({.critical = true}, "critical") == critical + 1);  // and one in the legend
  CHECK(count({}, "transfer") == 0);
  CHECK(count({.transfers = true}, "transfer") == 1);
  CHECK(count({}, "curve") == 2 * 3);  // a line and its name for every rank
  CHECK(count({.memory = false}, "curve") == 0);
}

TEST_CASE("a pair has a frame, and what it sends leaves at its end") {
  pp::schedules::problem<> const question{2, 2, 6, 0, {{2, 2, 2, {}, 0, 1}}};
  auto const table = pp::schedules::make_dynamic_table<pp::Paired<pp::EagerOneFOneB>>(question);
  pp::drawings::drawing const d =
      pp::drawings::of_table(question, table, pp::schedules::simulate(question, table));
  std::size_t pairs = 0;
  for (auto const& r : d.ranks)
    for (std::size_t i = 0; i < r.actions.size(); ++i)
      if (r.actions[i].what.with_next) {
        ++pairs;
        int const rank = int(&r - d.ranks.data());
        CHECK(d.ready(rank, int(i)) == r.actions[i].start + 5);
        CHECK(d.ready(rank, int(i) + 1) == r.actions[i].start + 5);
      }
  std::size_t frames = 0;
  for (element const& e : elements_of(pp::drawings::as_svg(d)))
    frames += e.attributes.count("class") && e.attributes.at("class") == "pair";
  CHECK(pairs == 5 + 3);
  CHECK(frames == pairs + 1);  // and one in the legend
}

TEST_CASE("a hostile title is text") {
  pp::detail::drawing_words const words{"</title><script>\"a\" & 'b'\x01\xFF", "<b>", "&"};
  std::string const text = pp::drawings::as_svg(tables::draw(pp::schedules::placement::loop, words),
                                                {.critical = true, .transfers = true});
  elements_of(text);
  CHECK(text.find("<script>") == text.npos);
  CHECK(text.find("&lt;/title&gt;&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;��") != text.npos);
}

TEST_CASE("nothing, and very much, can be drawn, too") {
  elements_of(pp::drawings::as_svg(pp::drawings::drawing{}));
  auto const question = pp::schedules::equal_times(300, 2);
  auto const table = pp::schedules::make_dynamic_table<pp::GPipe>(question);
  std::string const text = pp::drawings::as_svg(
      pp::drawings::of_table(question, table, pp::schedules::simulate(question, table)),
      {.critical = true});
  CHECK(text.find(">rank 0<") != text.npos);
  CHECK(text.find(">rank 299<") == text.npos);  // names keep their distance
}

TEST_CASE("text is readable on every fill, and fills are apart without colours") {
  using enum pp::schedules::action_kind;
  for (int kind = 0; kind < pp::detail::action_kinds; ++kind)
    for (int shade = 0; shade < pp::detail::drawn_shades; ++shade) {
      pp::detail::colour const fill = pp::detail::fill_of(pp::schedules::action_kind(kind), shade);
      INFO(kind << " " << shade << " " << pp::detail::hex_of(fill));
      CHECK(pp::detail::contrast(fill, pp::detail::text_on(fill)) > 4.5);
    }
  for (int shade = 0; shade < pp::detail::drawn_shades; ++shade) {
    CHECK(pp::detail::text_on(pp::detail::fill_of(backward_input, shade)) ==
          pp::detail::text_on(pp::detail::fill_of(backward_weight, shade)));
    CHECK(pp::detail::contrast(pp::detail::fill_of(forward, shade),
                               pp::detail::fill_of(backward_input, shade)) > 1.2);
    CHECK(pp::detail::contrast(pp::detail::fill_of(backward_input, shade),
                               pp::detail::fill_of(backward_weight, shade)) > 1.2);
  }
  CHECK(pp::detail::hex_of({0, 10, 255}) == "#000aff");
  CHECK(pp::detail::contrast(pp::detail::white, {0, 0, 0}) == Approx(21));
}
