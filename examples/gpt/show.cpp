// SPDX-License-Identifier: BSL-1.0
#include "show.hpp"

#include <cstdio>

#include <pipe/report/html.hpp>
#include <pipe/report/terminal.hpp>
#include <pipe/report/write_file.hpp>

void show(options const& o, pp::drawing const& predicted, pp::drawing const& measured) {
  if (o.timeline)
    for (pp::drawing const* const d : {&predicted, &measured})
      std::printf("\n%s", pp::draw_text(*d, {.colours = pp::wants_colour(stdout)}).c_str());
  if (!o.page.empty()) pp::write_file(o.page, pp::draw_html(predicted, measured));
}
