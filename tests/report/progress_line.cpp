// SPDX-License-Identifier: BSL-1.0
//
// Progress on a terminal and elsewhere.
#include <chrono>
#include <cstdio>
#include <string>

#include "catch.hpp"

#include <pipe/report/progress_line.hpp>
#include "report/pseudo_terminal.hpp"
#include <train/folder.hpp>

namespace {

std::string words(pp::step_metrics const& m) { return "loss " + std::to_string(int(m.loss)); }

}  // namespace

TEST_CASE(
    "elsewhere than on a terminal there is a line for every hundredth, and the first and last") {
  temporary_folder const folder;
  std::FILE* const file = std::fopen(folder.file("out").c_str(), "w");
  pp::progress_line line(500, words, file);
  for (long step = 1; step <= 500; ++step) line.write({.step = step, .loss = 2});
  line.end();
  std::fclose(file);
  std::string const text = content(folder.file("out"));
  CHECK(text.starts_with("step   1/500  loss 2\nstep   5/500  loss 2"));
  CHECK(text.find("step 250/500  loss 2\n") != text.npos);
  CHECK(text.ends_with("step 500/500  loss 2\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 101);
  CHECK(text.find('\r') == text.npos);
}

TEST_CASE("on a terminal one line is rewritten, as wide as there is room, and closed at the end") {
  pseudo_terminal const t(40);
  if (t.is_missing()) return;
  pp::progress_line line(
      4, [](auto&) { return "\xC3\xA4\033[31m" + std::string(50, 'x'); }, t.file);
  line.write({.step = 1});
  // Control characters of words are not obeyed, and a character is not cut in half.
  CHECK(t.read_to("\033[K") == "\r[####............] step 1/4  \xC3\xA4\xEF\xBF\xBD[31mxxxx\033[K");
  line.write({.step = 2});
  CHECK(t.read_to("\033[K").starts_with("\r[########........] 0:00 left  step 2/4"));
  line.end();
  CHECK(t.read_to("\n") == "\r\n");
  line.end();
  line.write({.step = 4});
  std::string const last = t.read_to("\n");
  CHECK(last.ends_with("\033[K\r\n"));
  line.end();
  std::fputs("!", t.file);
  std::fflush(t.file);
  CHECK(t.read_to("!") == "!");
}

TEST_CASE("the time left follows the pace of the last steps") {
  using namespace std::chrono_literals;
  pp::detail::run_pace pace(1000);
  auto now = pp::detail::run_pace::clock::now();
  pace.add(501, now);  // resumed: nothing is known of the steps before
  CHECK(pace.seconds_left() < 0);
  pace.add(511, now += 20s);
  CHECK(pace.seconds_left() == Approx(2 * 489));
  for (long step = 512; step < 900; ++step) pace.add(step, now += 1s);
  CHECK(pace.seconds_left() == Approx(101).epsilon(0.01));
  pace.add(1000, now += 1s);
  CHECK(pace.seconds_left() == 0);
  CHECK(pp::detail::readable_duration(59.6) == "1:00");
  CHECK(pp::detail::readable_duration(5025) == "1:23:45");
}

TEST_CASE("a reader that has left ends neither the program nor the progress") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::FILE* const file = ::fdopen(ends[1], "w");
  ::close(ends[0]);
  pp::progress_line line(2, words, file);
  line.write({.step = 1});
  CHECK(std::ferror(file) != 0);
  line.write({.step = 2});
  std::fclose(file);
}
