// SPDX-License-Identifier: BSL-1.0
//
// The size of every value in memory.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/graph/differentiate.hpp>

namespace pp {

/// Bytes of a number: of parameters, gradients and statistics; of all other values, and of what
/// kernels read of parameters.
struct number_widths {
  int element = 4, value = 4;
};

/// The values of a graph and of its gradients, in one numbering.
struct value_table {
  view<value> forward, backward;
  bool const* is_statistic = nullptr;  // by forward value, see mark_statistics
  number_widths widths{};
  int samples = 1;

  constexpr int size() const { return forward.count + backward.count; }
  constexpr value const& at(int v) const {
    return v < forward.count ? forward.items[v] : backward.items[v - forward.count];
  }
  /// Of one sample.
  constexpr long elements(int v) const { return at(v).elements; }
  constexpr bool is_wide(int v) const { return v < forward.count && is_statistic[v]; }
  /// Of a micro-batch, up to the next value.
  constexpr long bytes(int v) const {
    return align_up(elements(v) * samples * (is_wide(v) ? widths.element : widths.value));
  }
};

/// Statistics of rows and logarithms of sums are as wide as parameters.
///
/// shape: forward ops -> wide[values], false at first
constexpr void mark_statistics(view<op> ops, bool* wide) {
  for (op const& o : ops)
    if (has<&op_traits::statistics>(o.kind) && o.out[1].where == space::value)
      wide[o.out[1].index] = true;
}

}  // namespace pp
