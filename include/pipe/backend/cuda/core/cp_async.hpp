// SPDX-License-Identifier: BSL-1.0
//
// Copies from global to shared memory that run while the block computes (cp.async): threads start
// copies in a phase, the block commits all started copies as a group, and later waits for the
// group.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>

namespace pp::cuda {

/// Starts a copy of `Bytes` (4, 8 or 16) to shared memory; if `present` is false, of zeros, and
/// `from` is not read. Called in a phase.
///
/// needs: both addresses are multiples of Bytes
template <int Bytes, class Block>
PIPE_HD PIPE_INLINE void copy_async(Block& block, void* to, void const* from, bool present = true) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
#ifdef __CUDA_ARCH__
  unsigned const at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  int const read = present ? Bytes : 0;
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(read)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(Bytes),
                 "r"(read)
                 : "memory");
#else
  block.copy_later(to, present ? from : nullptr, Bytes);
#endif
}

/// Prefetches the 128 bytes around `from` to L2; no effect on the CPU.
PIPE_HD PIPE_INLINE void prefetch([[maybe_unused]] void const* from) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
#endif
}

/// Commits the copies started so far as a group. Called between phases.
template <class Block>
PIPE_HD PIPE_INLINE void commit_copies([[maybe_unused]] Block& block) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  block.commit();
#endif
}

/// Waits until all groups but the last `Pending` have arrived and all threads of the block may read
/// them. Called between phases.
template <int Pending, class Block>
PIPE_HD PIPE_INLINE void await_copies([[maybe_unused]] Block& block) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
  __syncthreads();
#else
  block.await(Pending);
#endif
}

}  // namespace pp::cuda
