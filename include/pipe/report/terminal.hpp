// SPDX-License-Identifier: BSL-1.0
//
// A drawing as text with its title and its numbers, in colours where a terminal shows them.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include <unistd.h>

#include <pipe/report/drawing.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/timeline.hpp>

namespace pp {

/// Whether a program may write colours there: a terminal that did not ask for none (NO_COLOR,
/// TERM=dumb).
inline bool wants_colour(std::FILE* file) {
  char const* const none = std::getenv("NO_COLOR");
  char const* const terminal = std::getenv("TERM");
  bool const refused = (none != nullptr && *none != 0) ||
                       (terminal != nullptr && std::string_view(terminal) == "dumb");
  return !refused && ::isatty(::fileno(file)) == 1;
}

/// No for streams other than std::cout and std::cerr: whether they lead to a terminal cannot be
/// known.
inline bool wants_colour(std::ostream const& stream) {
  if (stream.rdbuf() == std::cout.rdbuf()) return wants_colour(stdout);
  return stream.rdbuf() == std::cerr.rdbuf() && wants_colour(stderr);
}

namespace detail {

struct text_options {
  int width = 88;        ///< of the time, in characters
  bool colours = false;  ///< best: wants_colour(stdout)
};

}  // namespace detail

/// A drawing with its title and its numbers. Chunks of a rank are told apart by colours only.
inline std::string draw_text(drawing const& d, detail::text_options const& options = {}) {
  detail::timeline_drawing lines(int(d.ranks.size()), d.makespan, options.width);
  unsigned kinds = 0;
  for (std::size_t rank = 0; rank < d.ranks.size(); ++rank)
    for (detail::drawn_action const& a : d.ranks[rank].actions) {
      lines.add(int(rank), a.what, a.start, a.end, a.shade);
      kinds |= detail::bit(a.what.kind);
    }
  std::string const title = d.words.title.empty() ? "" : terminal_escaped(d.words.title) + "\n";
  return title + detail::summary_of(d) + "\n" + lines.str(options.colours) +
         detail::drawing_legend(kinds & detail::bit(action_kind::backward_weight)) +
         (kinds & detail::bit(action_kind::recompute) ? ", + recompute" : "") +
         (kinds & detail::bit(action_kind::update) ? ", * update" : "") + "\n";
}

}  // namespace pp
