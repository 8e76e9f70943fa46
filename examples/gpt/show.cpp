// SPDX-License-Identifier: BSL-1.0
#include "show.hpp"

#include <cstdio>

#include <pipe/report/html.hpp>
#include <pipe/report/terminal.hpp>
#include <pipe/report/write_file.hpp>

void show(options const& o, pp::drawings::drawing const& predicted,
          pp::drawings::drawing const& measured) {
  if (o.timeline)
    for (pp::drawings::drawing const* const d : {&predicted, &measured})
      std::printf(
          "\n%s",
          pp::drawings::as_text(*d, {.colours = pp::console::wants_colour(stdout)}).c_str());
  if (!o.page.empty()) pp::files::write_file(o.page, pp::drawings::as_html(predicted, measured));
}
