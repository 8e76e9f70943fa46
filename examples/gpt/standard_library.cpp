// SPDX-License-Identifier: BSL-1.0
#include "standard_library.hpp"

#include <cstdio>
#include <memory>
#include <string_view>

#include <pipe/base/error.hpp>

#ifndef EXAMPLE_COMPILER
#define EXAMPLE_COMPILER "c++"
#endif

namespace {

std::string output_of(std::string const& command) {
  struct closer {
    void operator()(std::FILE* f) const { pclose(f); }
  };
  std::string text;
  if (std::unique_ptr<std::FILE, closer> const pipe(popen(command.c_str(), "r")); pipe)
    for (int c; (c = std::getc(pipe.get())) != EOF;) text += char(c);
  return text;
}

/// Compilers print their search path, a directory per line, between these two lines.
std::filesystem::path directory_of_vector(std::string_view printed) {
  constexpr std::string_view begin = "#include <...> search starts here:\n",
                             end = "End of search list.";
  std::size_t const from = printed.find(begin), to = printed.find(end);
  if (from == printed.npos || to == printed.npos) return {};
  for (printed = printed.substr(from + begin.size(), to - from - begin.size()); !printed.empty();) {
    std::size_t const length = printed.find('\n');
    std::filesystem::path const directory(printed.substr(1, length - 1));  // one space before
    if (std::error_code none; is_regular_file(directory / "vector", none))
      return directory.lexically_normal();
    printed.remove_prefix(length + 1);
  }
  return {};
}

}  // namespace

std::filesystem::path standard_library_headers() {
  for (std::string const compiler : {"g++", "c++", "clang++", EXAMPLE_COMPILER}) {
    auto const directory =
        directory_of_vector(output_of("LC_ALL=C '" + compiler + "' -v -E -x c++ /dev/null 2>&1"));
    if (!directory.empty()) return canonical(directory);
  }
  throw pp::data_error(
      "no compiler's C++ headers were found to learn from: give a text with --data");
}
