// SPDX-License-Identifier: BSL-1.0
//
// The names of the rows of a drawing: the ranks of a pipeline, or of each of its replicas.
#pragma once

#include <cstddef>
#include <string>

namespace pp::detail {

/// The name of row `row` of `rows`, which are the ranks of `replicas` replicas of equal size: "rank
/// 3", "replica 1, rank 3". `wide`: numbers are aligned to the right.
template <class = void>
std::string name_of_row(std::size_t row, std::size_t rows, int replicas, bool wide = false) {
  std::size_t const each = rows / std::size_t(replicas);
  auto const number = [wide](std::size_t n, std::size_t end) {
    std::string const digits = std::to_string(n);
    std::size_t const most = std::to_string(end - 1).size();
    return std::string(wide ? most - digits.size() : 0, ' ') + digits;
  };
  std::string name = "rank " + number(row % each, each);
  if (replicas > 1) name = "replica " + number(row / each, std::size_t(replicas)) + ", " + name;
  return name;
}

}  // namespace pp::detail
