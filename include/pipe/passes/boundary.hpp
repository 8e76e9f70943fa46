// SPDX-License-Identifier: BSL-1.0
//
// What two neighbouring stages hand each other: the main value and every named one that is still to
// be read, and on the way back their gradients. A value that passes through a stage is in both of
// its boundaries.
#pragma once

#include <pipe/base/static_vector.hpp>
#include <pipe/graph/op.hpp>

namespace pp {

/// A value in a boundary's slot, `offset` bytes from its start.
struct handed_on {
  operand what{};
  long offset = 0;
};

template <int Most>
struct boundary {
  static_vector<handed_on, Most> forward, gradient;
  long forward_bytes = 0, gradient_bytes = 0;
};

/// Where x is in a list, or -1.
template <class List>
constexpr int find(List const& list, operand x) {
  for (int i = 0; i < int(list.size()); ++i)
    if (list[i].what == x) return i;
  return -1;
}

}  // namespace pp
