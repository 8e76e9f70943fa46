// SPDX-License-Identifier: BSL-1.0
//
// The rows of a micro-batch whose samples have several lengths. They lie densely, in segments: the
// rows of one sample, one for each position, one segment behind the other. Memory is planned for
// the longest samples, so rows from `rows` on are neither read nor written.
#pragma once

#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A row's segment in its micro-batch, and its position in the segment.
struct row_place {
  long segment = 0, position = 0;
};

/// The segments of a micro-batch, none in one without samples. Segment s has rows [first[s],
/// first[s + 1]), of which the caller gave the first given[s]; the others are padding, up to a
/// whole number of blocks.
///
/// law: no segment is empty; first[0] is 0, first[count] is rows
struct segment_list {
  int rows = 0, count = 0;
  long first_sample = 0;         ///< index in the mini-batch of the first segment's sample
  int planned_rows = 0;          ///< of a micro-batch of samples of the longest length
  int const* first = nullptr;    ///< [count + 1]
  int const* segment = nullptr;  ///< [rows]: the segment of each row
  int const* given = nullptr;    ///< [count]
  /// [count]: the first row of each segment among those of the caller's mini-batch
  long const* place = nullptr;

  PIPE_HD constexpr int length(long s) const { return first[s + 1] - first[s]; }
  /// The same of a planned sample, which may be absent: no rows.
  PIPE_HD constexpr int length_of(long sample) const { return sample < count ? length(sample) : 0; }
  PIPE_HD constexpr int first_of(long sample) const { return sample < count ? first[sample] : 0; }
  PIPE_HD constexpr row_place place_of(long row) const {
    int const s = segment[row];
    return {s, row - first[s]};
  }
};

/// The rows of a block, of which samples of several lengths have a whole number; 0 in a pipeline
/// without Lengths.
template <class P>
constexpr int block_rows() {
  if constexpr (requires { P::length_block; })
    return P::length_block;
  else
    return 0;
}
/// The most segments of a micro-batch of pipeline P: its samples, or with Lengths a multiple.
template <class P>
constexpr int planned_segments() {
  if constexpr (requires { P::length_most; })
    return P::samples * P::length_most;
  else
    return P::samples;
}
/// Whether pipeline P has Lengths: the rows of launches on an axis are those of
/// launch_context::segments.
template <class P>
inline constexpr bool has_segments = block_rows<P>() > 0;

}  // namespace pp::detail
PIPE_OPTIMIZED_END
