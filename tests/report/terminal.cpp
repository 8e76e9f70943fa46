// SPDX-License-Identifier: BSL-1.0
//
// Colours for terminals, and text for everything else.
#include <cstdlib>
#include <regex>
#include <sstream>

#include "catch.hpp"

#include <pipe/report/terminal.hpp>
#include "report/pseudo_terminal.hpp"
#include "report/tables.hpp"

namespace {

std::string without_colours(std::string const& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9;]*m"), "");
}

}  // namespace

TEST_CASE("colours change nothing but colours") {
  for (pp::schedules::placement const where :
       {pp::schedules::placement::loop, pp::schedules::placement::vee}) {
    pp::drawings::drawing const d = tables::draw(where);
    std::string const plain = pp::drawings::as_text(d),
                      coloured = pp::drawings::as_text(d, {.colours = true});
    CHECK(plain.find('\x1b') == plain.npos);
    CHECK(coloured != plain);
    CHECK(without_colours(coloured) == plain);
    CHECK(plain.find("A B C ... weight gradient, . idle, + recompute, * update\n") != plain.npos);
  }
}

TEST_CASE("a coloured line ends without colour") {
  std::istringstream lines(
      pp::drawings::as_text(tables::draw(pp::schedules::placement::loop), {.colours = true}));
  for (std::string line; std::getline(lines, line);) {
    std::size_t const begins = line.rfind("\x1b[38"), ends = line.rfind("\x1b[0m");
    INFO(line);
    CHECK((begins == line.npos || (ends != line.npos && ends > begins)));
  }
}

TEST_CASE("chunks of a rank have colours of their own") {
  pp::detail::timeline_drawing same(1, 2, 2), other(1, 2, 2);
  for (int i = 0; i < 2; ++i) same.add(0, {}, i, i + 1), other.add(0, {}, i, i + 1, i);
  CHECK(same.str() == other.str());
  CHECK(same.str(true) != other.str(true));
}

TEST_CASE("a backward as one is half B, half W") {
  pp::detail::timeline_drawing drawing(1, 4, 4);
  drawing.add(0, {pp::schedules::action_kind::backward, 0, 0}, 0, 4);
  auto const colours = [](pp::schedules::action_kind kind) {
    pp::detail::colour const fill = pp::detail::fill_of(kind);
    return pp::detail::terminal_colours(pp::detail::text_on(fill), fill);
  };
  CHECK(drawing.str(true) == "rank 0  " + colours(pp::schedules::action_kind::backward_input) +
                                 "aa" + colours(pp::schedules::action_kind::backward_weight) +
                                 "aa\x1b[0m\n");
}

TEST_CASE("a title cannot speak to the terminal") {
  std::string const text =
      pp::drawings::as_text(tables::draw(pp::schedules::placement::vee, {"a\x1b]0;b\a\x9b"
                                                                         "c\xC2\x9B"}));
  CHECK(text.find("a�]0;b��c�\n") == 0);
}

TEST_CASE("colours are for terminals that want them") {
  pseudo_terminal const other_end;
  if (other_end.is_missing()) return;
  std::FILE *const terminal = other_end.file, *const file = std::tmpfile();
  REQUIRE(file != nullptr);
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  CHECK(pp::console::wants_colour(terminal));
  CHECK_FALSE(pp::console::wants_colour(file));
  CHECK_FALSE(pp::console::wants_colour(std::ostringstream()));
  CHECK(pp::console::wants_colour(std::cout) == pp::console::wants_colour(stdout));
  ::setenv("NO_COLOR", "1", 1);
  CHECK_FALSE(pp::console::wants_colour(terminal));
  ::setenv("NO_COLOR", "", 1);
  CHECK(pp::console::wants_colour(terminal));
  ::setenv("TERM", "dumb", 1);
  CHECK_FALSE(pp::console::wants_colour(terminal));
  ::unsetenv("NO_COLOR");
  std::fclose(file);
}
