// SPDX-License-Identifier: BSL-1.0
//
// Checks of arrays in a device's memory, which a trainer asks of its engine before a run reads
// them.
#pragma once

#include <pipe/graph/graph.hpp>

namespace pp::detail {

/// A range for the values of an array: [least, most], of ids or of floats. NaN is outside.
struct value_check {
  void const* values = nullptr;  ///< in device memory; null: nothing to check
  long count = 0;
  bool are_ids = false;
  int least_id = 0, most_id = 0;
  float least = 0, most = 0;
};
/// The result of a check.
struct checked_values {
  /// The index of the first value outside the range; the number of values if there is none.
  long first = 0;
  long counted = 0;  ///< ids of 0 or more
};
/// The maximum number of checks: one for each input of a batch, and one for the labels.
inline constexpr int most_checks = max_inputs + 1;

}  // namespace pp::detail
