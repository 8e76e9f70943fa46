// SPDX-License-Identifier: BSL-1.0
//
// The number of threads that share a row and keep its elements in registers.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>

namespace pp::cuda {

/// The division of a row among the threads of a team: `pieces` accesses of `each` elements, and
/// `size` threads, each of which keeps `bytes` bytes of an element in registers.
struct row_division {
  static constexpr int most_threads = 512, most_bytes = 128;
  int each, pieces, piece_bytes, size;

  PIPE_HD constexpr int trips_of(int team) const { return (pieces + team - 1) / team; }
  /// Whether the threads of the team can keep a row.
  constexpr bool keeps() const { return trips_of(size) * piece_bytes <= most_bytes; }

  /// element_bytes: of an element in memory; an access has up to 16 bytes
  static constexpr row_division of(int columns, int element_bytes, int bytes) {
    int each = 16 / element_bytes;
    while (columns % each != 0) each /= 2;
    // A register has four bytes.
    row_division d{each, columns / each, each * bytes > 4 ? each * bytes : 4, 1};
    while (d.size < warp_size && d.size < d.pieces) d.size *= 2;
    while (d.size < most_threads && !d.keeps()) d.size *= 2;
    return d;
  }
};

/// The division of a row for a norm's gradients, where threads keep g and xhat. The rule of chains
/// calls this function before there is a kernel.
constexpr row_division divide_norm_row(int columns, int element_bytes) {
  return row_division::of(columns, element_bytes, 2 * int(sizeof(float)));
}

}  // namespace pp::cuda
