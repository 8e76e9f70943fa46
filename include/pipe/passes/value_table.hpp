// SPDX-License-Identifier: BSL-1.0
//
// The size of every value of a graph and of its gradients in memory.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/graph/differentiate.hpp>

namespace pp::detail {

/// Bytes per number. element: parameters, gradients and statistics; value: all other values, and
/// the copies of parameters that kernels read.
struct number_widths {
  int element = 4, value = 4;
  /// Whether kernels read copies of parameters in the type of values.
  constexpr bool has_copies() const { return value != element; }
};

/// The values of a graph and of its gradients, in one numbering.
struct value_table {
  view<value> forward, backward;
  bool const* is_statistic = nullptr;  // by forward value, see mark_statistics
  number_widths widths{};
  int samples = 1;

  constexpr int size() const { return forward.count + backward.count; }
  /// The numbers of one sample of a value: those of the forward graph come first, then gradients.
  constexpr long elements(int v) const {
    return v < forward.count ? forward.items[v].elements
                             : backward.items[v - forward.count].elements;
  }
  /// Whether the value is of the type of parameters.
  constexpr bool is_wide(int v) const { return v < forward.count && is_statistic[v]; }
  /// Bytes of a micro-batch, rounded up to the alignment.
  constexpr long bytes(int v) const {
    bool const is_wide = v < forward.count && is_statistic[v];
    return align_up(elements(v) * samples * (is_wide ? widths.element : widths.value));
  }
};

/// Marks statistics of rows and logarithms of sums, which are of the type of parameters: 16 bits
/// would lose too much.
///
/// shape: forward ops -> wide[values], initially false
constexpr void mark_statistics(view<op> ops, bool* wide) {
  for (op const& o : ops)
    if (has<&op_traits::statistics>(o.kind) && o.out[1].where == space::value)
      wide[o.out[1].index] = true;
}

}  // namespace pp::detail
