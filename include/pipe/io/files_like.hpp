// SPDX-License-Identifier: BSL-1.0
//
// Files by a pattern, as a shell finds them.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <string>
#include <vector>

#include <glob.h>

#include <pipe/base/error.hpp>

namespace pp {

namespace files {

/// The paths that match a pattern (`*`, `?`, `[a-z]`), in the order of their bytes, whatever the
/// locale: "data/train_*.bin".
///
/// throws: file_error if there is none
inline std::vector<std::string> files_like(std::string const& pattern) {
  struct matches : ::glob_t {
    ~matches() { ::globfree(this); }
  } found{};
  int const fault = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (fault != 0)
    throw file_error(fault == GLOB_NOMATCH ? "no file is like '" + pattern + "'"
                                           : "cannot list the files like '" + pattern + "'");
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace files

namespace detail {
using namespace files;
}  // namespace detail

}  // namespace pp
