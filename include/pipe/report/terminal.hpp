// SPDX-License-Identifier: BSL-1.0
//
// A drawing as text with title and numbers, in colour if the terminal supports it.
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

namespace console {

/// Whether to write colours to a file: it is a terminal, and neither NO_COLOR nor TERM=dumb is set.
inline bool wants_colour(std::FILE* file) {
  char const* const none = std::getenv("NO_COLOR");
  char const* const terminal = std::getenv("TERM");
  bool const refused = (none != nullptr && *none != 0) ||
                       (terminal != nullptr && std::string_view(terminal) == "dumb");
  return !refused && ::isatty(::fileno(file)) == 1;
}

/// Whether to write colours to a stream. False for streams other than std::cout and std::cerr,
/// which may or may not be terminals.
inline bool wants_colour(std::ostream const& stream) {
  if (stream.rdbuf() == std::cout.rdbuf()) return wants_colour(stdout);
  return stream.rdbuf() == std::cerr.rdbuf() && wants_colour(stderr);
}

}  // namespace console

namespace detail {

/// Options of a text drawing.
struct text_options {
  int width = 88;        ///< characters of the time axis
  bool colours = false;  ///< for example wants_colour(stdout)
};

}  // namespace detail

namespace drawings {

/// A drawing as text, with its title and numbers. Chunks of a rank differ in colour only.
///
/// throws: pp::error for a negative width
inline std::string as_text(drawing const& d, detail::text_options const& options = {}) {
  detail::timeline_drawing lines(int(d.ranks.size()), d.makespan, options.width, d.replicas);
  unsigned kinds = 0;
  for (std::size_t rank = 0; rank < d.ranks.size(); ++rank)
    for (detail::drawn_action const& a : d.ranks[rank].actions) {
      lines.add(int(rank), a.what, a.start, a.end, a.shade);
      kinds |= detail::bit(a.what.kind);
    }
  std::string const title =
      d.words.title.empty() ? "" : console::terminal_escaped(d.words.title) + "\n";
  return title + detail::summary_of(d) + "\n" + lines.str(options.colours) +
         detail::drawing_legend(kinds & detail::bit(schedules::action_kind::backward_weight)) +
         (kinds & detail::bit(schedules::action_kind::recompute) ? ", + recompute" : "") +
         (kinds & detail::bit(schedules::action_kind::update) ? ", * update" : "") + "\n";
}

}  // namespace drawings

}  // namespace pp
