// SPDX-License-Identifier: BSL-1.0
//
// The shapes of narrow layers on a multiprocessor: the width of rows in shared memory, and the
// division of a product among the warps of a block.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>

namespace pp::cuda {

/// Bytes of shared memory that a block may have on every device that runs code for this
/// architecture (900: sm_90), from the tables of compute capabilities in the CUDA C++ Programming
/// Guide: code for sm_80 also runs on sm_86 and sm_89, which have the least.
constexpr long shared_bytes_on(int architecture) {
  return architecture >= 900 && architecture < 1200 ? 227 * 1024 : least_shared_bytes;
}
/// Bytes of shared memory of a block of narrow layers: at most the bytes of every architecture of
/// this build, and at most 163 KiB, which leaves memory for a block of another kernel on the
/// largest multiprocessor.
inline constexpr long narrow_shared_bytes = [] {
  long least = 163 * 1024;
#ifdef __CUDA_ARCH_LIST__
  for (int const architecture : {__CUDA_ARCH_LIST__})
    if (shared_bytes_on(architecture) < least) least = shared_bytes_on(architecture);
#endif
  return least;
}();
/// Threads of a block, and the number of blocks that fill a device.
inline constexpr int narrow_threads = 256, narrow_blocks = 2 * 132;

/// Columns of a matrix in shared memory: filled up with zeros to a multiple of 64 bytes, the depth
/// of a slab of contraction_tiles.
PIPE_HD constexpr int narrow_columns(int columns, int bytes) {
  int const some = 64 / bytes;
  return (columns + some - 1) / some * some;
}
/// Elements from a row to the next, as in operand_slab: 8 more than in a row, so that rows begin in
/// different banks.
PIPE_HD constexpr int narrow_stride(int columns, int bytes) {
  return narrow_columns(columns, bytes) + 8;
}

/// The number of tiles for the inputs of a chain's layers, if the chain recomputes them: three at
/// least, since the first layer's input of the next rows is copied while the last two tiles are in
/// use.
constexpr int narrow_tiles(int layers) { return layers < 3 ? 3 : layers; }

/// The division of a product's units: `rows` x `columns` warps, each with `down` x `across` units.
struct warp_grid {
  int rows, columns, down, across;
};
/// The grid of 8 warps in which the busiest warp multiplies the fewest units and, among those,
/// reads the fewest operands.
constexpr warp_grid spread_warps(int units_down, int units_across) {
  constexpr int warps = narrow_threads / warp_size;
  warp_grid best{1, warps, units_down, units_across};
  int least = 0;
  for (int rows = 1; rows <= warps; rows *= 2) {
    int const columns = warps / rows;
    warp_grid const g{rows, columns, (units_down + rows - 1) / rows,
                      (units_across + columns - 1) / columns};
    int const work = g.down * g.across * 64 + g.down + g.across;
    if (rows == 1 || work < least) best = g, least = work;
  }
  return best;
}

}  // namespace pp::cuda
