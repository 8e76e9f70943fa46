// SPDX-License-Identifier: BSL-1.0
//
// Warp collectives: exchanges between the threads of a warp without shared memory. Each atom is
// called between phases and works on a value in each thread's state, `access(state)`; on the CPU an
// atom does the work of the hardware for all warps of a block.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/base/math.hpp>

namespace pp::cuda {

inline constexpr unsigned all_lanes = 0xffffffffu;

struct plus {
  template <class T>
  PIPE_HD PIPE_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};
/// The larger of two numbers, in one instruction: +0 is larger than -0, and of a number and a NaN
/// the result is the number. So a row's maximum does not show a NaN: what is computed with it must
/// also read the row's numbers.
///
/// law:    commutative, bit for bit
/// source: PTX ISA, max
struct larger {
  PIPE_HD PIPE_INLINE int operator()(int a, int b) const { return a > b ? a : b; }
  PIPE_HD PIPE_INLINE float operator()(float a, float b) const {
#ifdef __CUDA_ARCH__
    return fmaxf(a, b);
#else
    if (a != a && b != b) return math::from_bits(0x7fffffffu);
    if (a != a || b != b) return a != a ? b : a;
    return a > b || (a == b && math::bits(a) < math::bits(b)) ? a : b;
#endif
  }
};

/// One round of a butterfly: in every thread, x = op(x, the x of the thread whose lane differs in
/// the bits of `lanes`).
///
/// shape: one x per lane -> one per lane
/// needs: op is commutative, bit for bit; T has 4 or 8 bytes
/// cost:  one shuffle (two for 8 bytes), without shared memory or a barrier
template <class Block, class Access, class Op>
PIPE_HD PIPE_INLINE void exchange(Block& block, int lanes, Access access, Op op) {
#ifdef __CUDA_ARCH__
  auto& x = access(block.mine());
  x = op(x, __shfl_xor_sync(all_lanes, x, lanes));
#else
  block.together([&](int first) {
    for (int thread = first; thread < first + warp_size; ++thread) {
      if (thread & lanes & -lanes)
        continue;  // each pair once: by the thread in which the lowest of these bits is 0
      auto &a = access(block.of(thread)), &b = access(block.of(thread ^ lanes));
      auto const x = a, y = b;
      a = op(x, y);
      b = op(y, x);
    }
  });
#endif
}

/// A reduction over Width neighbouring lanes, with the result in all of them: log2(Width) rounds of
/// a butterfly.
///
/// shape: one x per lane -> op over Width lanes, in each lane
/// law:   the order of operations depends on Width only; all lanes get the same bits
template <int Width = warp_size, class Block, class Access, class Op>
PIPE_HD PIPE_INLINE void reduce_lanes(Block& block, Access access, Op op) {
  static_assert(Width > 0 && Width <= warp_size && (Width & (Width - 1)) == 0);
  PIPE_UNROLL
  for (int lanes = Width / 2; lanes > 0; lanes /= 2) exchange(block, lanes, access, op);
}

}  // namespace pp::cuda
