// SPDX-License-Identifier: BSL-1.0
//
// Ordinary loads and stores are one way to memory (the generic proxy), TMA and wgmma another (the
// async proxy). What is written one way is seen the other way behind a fence only.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::cuda {

#ifdef __CUDA_ARCH__
__device__ __forceinline__ unsigned shared_address(void const* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
#endif
/// The address in shared memory, for instructions that name it: from 0.
template <class Role>
PIPE_HD PIPE_INLINE unsigned address_in([[maybe_unused]] Role& role, void const* p) {
#ifdef __CUDA_ARCH__
  return shared_address(p);
#else
  return role.address_of(p);
#endif
}

/// What this thread has stored to shared memory is seen by TMA and wgmma that are started after it,
/// by this thread or, behind a barrier, by others.
template <class Role>
PIPE_HD PIPE_INLINE void fence_async_proxy([[maybe_unused]] Role& role) {
#ifdef __CUDA_ARCH__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  role.fence_async_proxy();
#endif
}

}  // namespace pp::cuda
