// SPDX-License-Identifier: BSL-1.0
//
// A part of what a stream carries, where samples have several lengths: messages are of the rows
// that are there.
#pragma once

#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::transports {

/// The rows of a micro-batch that are there, by axis, from axis 1 on; negative: all.
struct row_counts {
  int of_axis[4]{-1, -1, -1, -1};
};

/// One of the values in a slot, `offset` bytes from the slot's start. A value with rows on an axis
/// has `row_bytes` bytes for each; any other value, on axis 0, travels whole.
///
/// law: row_bytes times the rows of the longest samples is at most `bytes`
struct slot_part {
  long offset = 0, bytes = 0, row_bytes = 0;
  int axis = 0;

  /// The bytes that travel.
  constexpr long bytes_of(row_counts const& rows) const {
    int const there = axis == 0 ? -1 : rows.of_axis[axis - 1];
    return there < 0 ? bytes : row_bytes * there;
  }
};

}  // namespace pp::transports
PIPE_OPTIMIZED_END
