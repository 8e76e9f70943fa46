// SPDX-License-Identifier: BSL-1.0
//
// The rows of a launch: as planned or, with Lengths, those of the segments of its micro-batch,
// which lie densely. The planned number of a row is its number if all samples had the longest
// length: sums over rows have the order of planned numbers, so that they do not depend on where
// rows lie.
#pragma once

#include <pipe/backend/cuda/core/arguments.hpp>

namespace pp::cuda {

/// The rows of a launch of group G of P.
template <class P, int G>
struct launch_rows {
  static constexpr extent of_sample = group_of<P, G>::value.rows, planned = of_sample * P::samples;
  static constexpr bool vary = detail::has_segments<P>;

  /// The end of the rows in memory.
  PIPE_HD PIPE_INLINE static extent end([[maybe_unused]] arguments const& a) {
    if constexpr (vary)
      if (a.segments != nullptr) return extent(a.segments->rows) * each(a);
    return planned;
  }
  /// The end of the planned numbers of rows.
  PIPE_HD PIPE_INLINE static extent planned_end([[maybe_unused]] arguments const& a) {
    if constexpr (vary)
      if (a.segments != nullptr) return extent(a.segments->count) * of_sample;
    return planned;
  }
  /// The rows of each position: 1, or the number of heads of a norm of heads.
  PIPE_HD PIPE_INLINE static int each([[maybe_unused]] arguments const& a) {
    if constexpr (vary)
      if (a.segments != nullptr) return int(planned / a.segments->planned_rows);
    return 1;
  }

  /// The row in memory of a planned number; -1: no such row. each: as each(a). Or, with PerRow
  /// things for each row, the thing in memory.
  template <int PerRow = 1>
  PIPE_HD PIPE_INLINE static extent find([[maybe_unused]] arguments const& a, extent number,
                                         [[maybe_unused]] int each) {
    if constexpr (vary)
      if (a.segments != nullptr) {
        constexpr extent all = of_sample * PerRow;
        extent const sample = number / all, place = number % all;
        if (place >= extent(a.segments->length(sample)) * each * PerRow) return -1;
        return extent(a.segments->first[sample]) * each * PerRow + place;
      }
    return number;
  }

  /// The number of the micro-batch's first sample in the run.
  PIPE_HD PIPE_INLINE static extent first_sample(arguments const& a) {
    if constexpr (vary)
      if (a.segments != nullptr) return a.segments->first_sample;
    return a.first_sample;
  }
  /// The sample of a row in the micro-batch, and the row's position in the sample.
  ///
  /// needs: one row for each position
  PIPE_HD PIPE_INLINE static detail::row_place place_of([[maybe_unused]] arguments const& a,
                                                        extent row) {
    if constexpr (vary)
      if (a.segments != nullptr) return a.segments->place_of(row);
    return {row / of_sample, row % of_sample};
  }
};

}  // namespace pp::cuda
