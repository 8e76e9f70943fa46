// SPDX-License-Identifier: BSL-1.0
//
// A drawing, or a prediction above a measurement, as one HTML page to look into: zoom, times and bytes under the pointer, the
// critical path, one micro-batch followed through the ranks. The page loads nothing, and its policy forbids it to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <pipe/report/drawing.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/page.hpp>
#include <pipe/report/page_script.hpp>
#include <pipe/report/palette.hpp>

namespace pp {

/// `[one(0),one(1),...]`: an array of JSON.
template <class One>
std::string json_array(std::size_t count, One one) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) text += (i > 0 ? "," : "") + one(i);
  return text + "]";
}

/// One rank: seven numbers for each action, two for each point of its memory, name and two times for each detail.
inline std::string page_rank(drawn_rank const& r) {
  auto const number = [](long n) { return std::to_string(n); };
  return "{\"actions\":" +
         json_array(r.actions.size(),
                    [&](std::size_t i) {
                      drawn_action const& a = r.actions[i];
                      return number(int(a.what.kind)) + "," + number(a.what.chunk) + "," + number(a.what.micro_batch) +
                             "," + number(a.start) + "," + number(a.end) + "," + number(a.shade) + "," +
                             number(a.critical);
                    }) +
         ",\"memory\":" +
         json_array(r.memory.size(),
                    [&](std::size_t i) { return number(r.memory[i].time) + "," + number(r.memory[i].live); }) +
         ",\"peak\":" + number(r.peak_memory) + ",\"details\":" +
         json_array(r.details.size(),
                    [&](std::size_t i) {
                      drawn_detail const& s = r.details[i];
                      return "[" + json_string(s.name) + "," + number(s.start) + "," + number(s.end) + "]";
                    }) +
         "}";
}

/// `scale`: by which its times are multiplied on the axis that all drawings of the page share.
inline std::string page_drawing(drawing const& d, double scale) {
  char exact[32];
  std::snprintf(exact, sizeof exact, "%.17g", scale);
  return "{\"title\":" + json_string(d.words.title) + ",\"summary\":" + json_string(summary_of(d)) +
         ",\"time_unit\":" + json_string(d.words.time_unit) + ",\"memory_unit\":" + json_string(d.words.memory_unit) +
         ",\"makespan\":" + std::to_string(d.makespan) + ",\"scale\":" + exact + ",\n\"transfers\":" +
         json_array(d.transfers.size(),
                    [&](std::size_t i) {
                      drawn_transfer const& t = d.transfers[i];
                      return std::to_string(t.from_rank) + "," + std::to_string(t.from) + "," +
                             std::to_string(t.to_rank) + "," + std::to_string(t.to);
                    }) +
         ",\n\"curves\":" +
         json_array(d.ranks.size(),
                    [&](std::size_t i) { return json_string(hex_of(colour_of_rank(i, d.ranks.size()))); }) +
         ",\n\"ranks\":" + json_array(d.ranks.size(), [&](std::size_t i) { return "\n" + page_rank(d.ranks[i]); }) +
         "}";
}

/// What the page has to know of colours, and the legend: names with backgrounds of CSS.
inline std::string page_colours(std::vector<drawing const*> const& drawings) {
  auto const kind_of = [](std::size_t kind) { return static_cast<action_kind>(kind); };
  auto const hex = [&](std::size_t kind, std::size_t shade) { return hex_of(fill_of(kind_of(kind), int(shade))); };
  std::string texts, keys;
  auto const key = [&](std::string const& name, std::string const& background) {
    keys += (keys.empty() ? "[" : ",[") + json_string(name) + "," + json_string(background) + "]";
  };
  bool occurs[action_kinds]{};
  int shades = 1;
  for (drawing const* d : drawings)
    for (drawn_rank const& r : d->ranks)
      for (drawn_action const& a : r.actions) {
        occurs[int(a.what.kind)] = true;
        shades = std::max(shades, a.shade + 1);
      }
  for (std::size_t kind = 0; kind < action_kinds; ++kind) {
    for (std::size_t shade = 0; shade < drawn_shades; ++shade)
      texts += (texts.empty() ? "" : ",") + json_string(hex(kind, shade)) + ":" +
               json_string(hex_of(text_on(fill_of(kind_of(kind), int(shade)))));
    std::string background = hex(kind, 0);
    if (kind_of(kind) == action_kind::backward)
      background =
          "linear-gradient(90deg," + background + " 50%," + hex(int(action_kind::backward_weight), 0) + " 50%)";
    if (kind_of(kind) == action_kind::recompute)
      background = "repeating-linear-gradient(135deg," + background + " 0 3px,#6b7280 3px 4px)";
    if (occurs[kind]) key(std::string(short_name(kind_of(kind))) + " " + long_name(kind_of(kind)), background);
  }
  for (int shade = 1; shade < shades; ++shade) key(name_of_shade(shade), hex(0, std::size_t(shade)));
  return "\"kinds\":" +
         json_array(action_kinds, [&](std::size_t kind) { return json_string(short_name(kind_of(kind))); }) +
         ",\"fills\":" +
         json_array(action_kinds,
                    [&](std::size_t kind) {
                      return json_array(drawn_shades, [&](std::size_t shade) { return json_string(hex(kind, shade)); });
                    }) +
         ",\"texts\":{" + texts + "},\"keys\":[" + keys + "]";
}

/// One page of several drawings, one below the other on one axis: the time of the last. A drawing in another unit is stretched
/// until its ranks compute as long in all as those of the last: what differs then is order and waiting.
inline std::string draw_html(std::vector<drawing const*> const& drawings) {
  auto const busy = [](drawing const& d) {
    long sum = 0;
    for (drawn_rank const& r : d.ranks) sum += r.busy();
    return double(std::max(1L, sum));
  };
  drawing const& last = *drawings.back();
  std::string const title = xml_escaped(last.words.title);
  std::string data = "{" + page_colours(drawings) + ",\n\"drawings\":[";
  for (drawing const* d : drawings)
    data += (d == drawings.front() ? "" : ",\n") +
            page_drawing(*d, d->words.time_unit == last.words.time_unit ? 1 : busy(last) / busy(*d));
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src 'unsafe-inline'\">\n<title>" +
         title + "</title>\n<style>" + page_style + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>" + page_body +
         "<script type=\"application/json\" id=\"data\">" + data + "]}</script>\n<script>" + page_script +
         "</script>\n</body>\n</html>\n";
}

inline std::string draw_html(drawing const& d) { return draw_html(std::vector<drawing const*>{&d}); }

/// law: the page is called like the measurement
inline std::string draw_html(drawing const& predicted, drawing const& measured) {
  return draw_html(std::vector<drawing const*>{&predicted, &measured});
}

}  // namespace pp
