// SPDX-License-Identifier: BSL-1.0
//
// A drawing, or a prediction above a measurement, as one interactive HTML page: zoom, times and
// bytes at the pointer, the critical path, and the path of one micro-batch. The page loads nothing,
// and its content security policy forbids it.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <pipe/base/real_text.hpp>
#include <pipe/report/drawing.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/json.hpp>
#include <pipe/report/page.hpp>
#include <pipe/report/page_interaction.hpp>
#include <pipe/report/page_script.hpp>
#include <pipe/report/palette.hpp>

namespace pp {

namespace detail {

/// Data of a rank: eight numbers for each action, two for each point of its memory curve.
/// The numbers have no separators of their own: page_script knows how many belong together.
inline std::string page_rank(drawn_rank const& r) {
  auto const one_action = [&](std::size_t i) {
    drawn_action const& a = r.actions[i];
    return json_numbers({long(a.what.kind), a.what.chunk, a.what.micro_batch, a.start, a.end,
                         a.shade, a.critical, a.what.with_next});
  };
  auto const one_point = [&](std::size_t i) {
    return json_numbers({r.memory[i].time, r.memory[i].live});
  };
  auto const one_detail = [&](std::size_t i) {
    drawn_detail const& inside = r.details[i];
    return json_object({{"name", json_string(inside.name)},
                        {"start", std::to_string(inside.start)},
                        {"end", std::to_string(inside.end)}});
  };
  return json_object({{"actions", json_array(r.actions.size(), one_action)},
                      {"memory", json_array(r.memory.size(), one_point)},
                      {"peak", std::to_string(r.peak_memory)},
                      {"details", json_array(r.details.size(), one_detail)}});
}

/// Data of a drawing. `scale`: factor from its times to the page's common axis.
inline std::string page_drawing(drawing const& d, double scale) {
  std::string const exact(real_text(scale, 17));  // read as the same double
  auto const one_transfer = [&](std::size_t i) {
    drawn_transfer const& t = d.transfers[i];
    return json_numbers({t.from_rank, t.from, t.to_rank, t.to});
  };
  auto const one_name = [&](std::size_t rank) { return json_string(d.name_of(rank)); };
  auto const one_curve = [&](std::size_t rank) {
    return json_string(hex_of(colour_of_rank(rank, d.ranks.size())));
  };
  auto const dashes_of_curve = [&](std::size_t rank) {
    auto const dashes = dashes_of_rank(rank);
    return json_array(dashes[0] > 0 ? dashes.size() : 0,
                      [&](std::size_t i) { return std::to_string(dashes[i]); });
  };
  return json_object({{"title", json_string(d.words.title)},
                      {"summary", json_string(summary_of(d))},
                      {"time_unit", json_string(d.words.time_unit)},
                      {"memory_unit", json_string(d.words.memory_unit)},
                      {"makespan", std::to_string(d.makespan)},
                      {"floor", std::to_string(d.floor.time)},
                      {"scale", exact},
                      {"transfers", json_array(d.transfers.size(), one_transfer)},
                      {"names", json_array(d.ranks.size(), one_name)},
                      {"curves", json_array(d.ranks.size(), one_curve)},
                      {"dashes", json_array(d.ranks.size(), dashes_of_curve)},
                      {"ranks", json_array(d.ranks.size(),
                                           [&](std::size_t i) { return page_rank(d.ranks[i]); })}});
}

/// CSS background of an action kind in the legend.
inline std::string legend_background(action_kind kind) {
  std::string fill = hex_of(fill_of(kind));
  if (kind == action_kind::backward)
    return "linear-gradient(90deg," + fill + " 50%," +
           hex_of(fill_of(action_kind::backward_weight)) + " 50%)";
  if (kind == action_kind::recompute)
    return "repeating-linear-gradient(135deg," + fill + " 0 3px,#6b7280 3px 4px)";
  return fill;
}

/// The legend: name and background of each kind and shade that occurs.
inline std::string page_keys(std::vector<drawing const*> const& drawings) {
  unsigned kinds = 0;
  int shades = 1;
  for (drawing const* d : drawings)
    for (drawn_rank const& r : d->ranks)
      for (drawn_action const& a : r.actions) {
        kinds |= bit(a.what.kind);
        shades = std::max(shades, a.shade + 1);
      }
  std::vector<std::string> keys;
  auto const key = [&keys](std::string const& name, std::string const& background) {
    keys.push_back(
        json_object({{"name", json_string(name)}, {"background", json_string(background)}}));
  };
  for (int k = 0; k < action_kinds; ++k)
    if (auto const kind = static_cast<action_kind>(k); kinds & bit(kind))
      key(std::string(short_name(kind)) + " " + long_name(kind), legend_background(kind));
  for (int shade = 1; shade < shades; ++shade)
    key(name_of_shade(shade), hex_of(fill_of(action_kind::forward, shade)));
  for (drawing const* d : drawings)
    if (d->floor.time > 0) {
      key("no order ends before", "repeating-linear-gradient(#d11149 0 4px,#fff 4px 6px)");
      break;
    }
  return json_array(keys.size(), [&](std::size_t i) { return keys[i]; });
}

/// A JSON array by action kind.
template <class One>
std::string page_kinds(One one) {
  return json_array(action_kinds, [&](std::size_t k) { return one(static_cast<action_kind>(k)); });
}

/// A JSON array by action kind and shade of one(fill colour).
template <class One>
std::string page_colours(One one) {
  return page_kinds([&](action_kind kind) {
    return json_array(drawn_shades, [&](std::size_t shade) {
      return json_string(hex_of(one(fill_of(kind, int(shade)))));
    });
  });
}

}  // namespace detail

namespace drawings {

/// An HTML page of several drawings, one below the other on a common axis, in the time of the last
/// one. A drawing in another unit is scaled so that a replica computes as long as one of the last
/// drawing: the remaining differences are order and waiting.
///
/// throws: pp::error for an empty list
inline std::string as_html(std::vector<drawing const*> const& drawings) {
  auto const busy = [](drawing const& d) {
    long sum = 0;
    for (detail::drawn_rank const& r : d.ranks) sum += r.busy();
    // At least 1: the scale is a quotient of two of these.
    return double(std::max(1L, sum)) / d.replicas;
  };
  if (drawings.empty())
    detail::throw_error<error>({"as_html: expected at least 1 drawing, got none"});
  drawing const& last = *drawings.back();
  std::string const title = detail::xml_escaped(last.words.title);
  auto const scale_of = [&](drawing const& d) {
    return d.words.time_unit == last.words.time_unit ? 1 : busy(last) / busy(d);
  };
  std::string const data = detail::json_object(
      {{"kinds", detail::page_kinds([](schedules::action_kind kind) {
          return detail::json_string(schedules::short_name(kind));
        })},
       {"fills", detail::page_colours([](detail::colour fill) { return fill; })},
       {"texts", detail::page_colours([](detail::colour fill) { return detail::text_on(fill); })},
       {"keys", detail::page_keys(drawings)},
       {"drawings", detail::json_array(drawings.size(), [&](std::size_t i) {
          return detail::page_drawing(*drawings[i], scale_of(*drawings[i]));
        })}});
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'; "
         "script-src 'unsafe-inline'\">\n<title>" +
         title + "</title>\n<style>" + detail::page_style + "</style>\n</head>\n<body>\n<h1>" +
         title + "</h1>" + detail::page_body + "<script type=\"application/json\" id=\"data\">" +
         data + "</script>\n<script>" + detail::page_script + detail::page_interaction +
         "</script>\n</body>\n</html>\n";
}

/// An HTML page of one drawing.
inline std::string as_html(drawing const& d) { return as_html(std::vector<drawing const*>{&d}); }

/// An HTML page of a prediction above a measurement.
///
/// law: the page has the measurement's title
inline std::string as_html(drawing const& predicted, drawing const& measured) {
  return as_html(std::vector<drawing const*>{&predicted, &measured});
}

}  // namespace drawings

}  // namespace pp
