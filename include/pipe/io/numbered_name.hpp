// SPDX-License-Identifier: BSL-1.0
//
// Names for files beside one that exists.
#pragma once

#include <cstddef>
#include <string>

namespace pp::detail {

/// "runs/a.csv", 2 -> "runs/a-2.csv". A dot at the begin of a name begins no ending.
inline std::string numbered_name(std::string const& path, long number) {
  std::size_t const dot = path.rfind('.');
  bool const has_ending =
      dot != path.npos && path.find('/', dot) == path.npos && dot > 0 && path[dot - 1] != '/';
  std::size_t const end = has_ending ? dot : path.size();
  return path.substr(0, end) + "-" + std::to_string(number) + path.substr(end);
}

}  // namespace pp::detail
