// SPDX-License-Identifier: BSL-1.0
//
// The description of a matrix in global memory for TMA, which copies boxes of it to shared memory,
// with 16-byte pieces permuted; elements beyond the matrix are zeros. A plain value: the driver
// encodes it for a device (encode_map.cuh), and tests copy by it.
#pragma once

#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/backend/cuda/hopper/mbarrier.hpp>
#include <pipe/backend/cuda/hopper/swizzle.hpp>
#include <pipe/backend/cuda/matmul/contraction_plan.hpp>

namespace pp::cuda {

/// A matrix (rows, columns) of 16-bit numbers, with rows `pitch` bytes apart, in boxes of box_rows
/// x box_columns.
struct tensor_map {
  void const* base = nullptr;
  product_format format = product_format::bf16;
  extent rows = 0, columns = 0, pitch = 0;
  int box_rows = 0, box_columns = 0;
  swizzle pattern = swizzle::bytes_128;
};

/// A map in the format of the device: 128 bytes that the driver has written.
struct alignas(64) encoded_map {
  unsigned char bytes[128];
};

/// The maps of the operands of a product, plain or encoded.
template <class Map>
struct operand_maps {
  Map left, right;
};

/// Starts the copy of the box at (row, column), which may reach beyond the matrix; the copy arrives
/// at `done` with its bytes. Called by one thread.
///
/// needs: `to` is aligned to 128 bytes, or to 8 * span_of(pattern) if wgmma reads it; the phase of
///        `done` expects the box's bytes
template <class Role, class Map>
PIPE_HD PIPE_INLINE void copy_box([[maybe_unused]] Role& role, void* to, Map const& map, int row,
                                  int column, mbarrier* done) {
#ifdef __CUDA_ARCH__
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(done))
      : "memory");
#else
  role.copy_box(to, map, row, column, done);
#endif
}

}  // namespace pp::cuda
