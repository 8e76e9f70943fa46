// SPDX-License-Identifier: BSL-1.0
//
// The test runner's own main, compiled once and linked into every test executable. Where
// PIPE_TESTS_LOCALE names a locale, tests run as in a program that has set it, in C and in C++:
// what the library writes and reads is the same.
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <string>

namespace {

/// Numbers as 1.234,5.
struct comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

void set_locale(char const* name) {
  std::locale::global(std::locale(std::locale::classic(), new comma));
  if (std::setlocale(LC_ALL, name) == nullptr)
    std::printf("the C library has no locale %s: only C++'s is set\n", name);
  else if (std::localeconv()->decimal_point != std::string(","))
    std::printf("%s has no decimal comma: only C++'s locale has\n", name);
  std::setlocale(LC_MESSAGES, "C");  // words of system errors are the system's
}

}  // namespace

/// Prints the last line of a process, in programs of several processes: tests/mpi/main.cpp.
[[gnu::weak]] void say_end(bool good);

int main(int count, char** arguments) {
  if (char const* const name = std::getenv("PIPE_TESTS_LOCALE")) set_locale(name);
  int const code = Catch::Session().run(count, arguments);
  if (say_end != nullptr) say_end(code == 0);
  return code;
}
