// SPDX-License-Identifier: BSL-1.0
//
// The search, on the device, for numbers that are not finite among the numbers that a launch has
// written. Only a flag of each block is copied to the host.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/warp.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/passes/chains.hpp>

namespace pp::cuda {

/// `count` numbers of a type, in memory.
struct flat_numbers {
  void const* data = nullptr;
  extent count = 0;
  dtype type = dtype::f32;
};

/// found[block] = 1 if the block has read a number that is infinite or NaN, else 0, for
/// `search_blocks` blocks.
///
/// shape: operands of any lengths -> found[search_blocks]
/// needs: numbers of f32, bf16 or f16
struct find_not_finite_kernel {
  static constexpr int threads = 256, search_blocks = 256;
  /// The maximum number of operands that one launch writes: for each group of a chain, its result
  /// and the result of every step.
  static constexpr int most = detail::chain_kernel::most * (detail::group::max_ops + 1);
  static_assert(most >= detail::group::max_operands);
  struct arguments {
    flat_numbers of[most];
    int operands = 0;
    int* found = nullptr;
  };
  static extent blocks(arguments const&) { return search_blocks; }
  struct state {
    int found;
  };
  struct shared {
    int of_warp[threads / warp_size];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state& mine) {
      mine.found = 0;
      extent const first = block.position() * threads + thread;
      for (int k = 0; k < a.operands; ++k) {
        flat_numbers const& x = a.of[k];
        if (x.type == dtype::f32)
          look(static_cast<unsigned const*>(x.data), x.count, 0x7f800000u, first, mine.found);
        else
          look(static_cast<unsigned short const*>(x.data), x.count,
               x.type == dtype::bf16 ? 0x7f80u : 0x7c00u, first, mine.found);
      }
    });
    reduce_lanes(block, [](state& mine) -> int& { return mine.found; }, larger{});
    block.phase([&](int thread, state& mine) {
      if (thread % warp_size == 0) block.shared().of_warp[thread / warp_size] = mine.found;
    });
    block.part([&](int thread, state&) {
      if (thread != 0) return;
      int any = 0;
      for (int const found : block.shared().of_warp) any = larger{}(any, found);
      a.found[block.position()] = any;
    });
  }

 private:
  /// exponent: the mask of the exponent's bits, all of which are set in numbers that are not finite
  template <class Bits>
  PIPE_HD PIPE_INLINE static void look(Bits const* x, extent count, unsigned exponent, extent first,
                                       int& found) {
    for (extent i = first; i < count; i += extent(search_blocks) * threads)
      if ((x[i] & exponent) == exponent) found = 1;
  }
};

}  // namespace pp::cuda
