// SPDX-License-Identifier: BSL-1.0
//
// The fence between two ways to memory: ordinary loads and stores (the generic proxy), and TMA and
// wgmma (the async proxy). A write by one way is visible to the other only behind a fence.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::cuda {

#ifdef __CUDA_ARCH__
__device__ __forceinline__ unsigned shared_address(void const* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
#endif
/// The address of p in shared memory, from 0, for instructions that take such addresses.
template <class Role>
PIPE_HD PIPE_INLINE unsigned address_in([[maybe_unused]] Role& role, void const* p) {
#ifdef __CUDA_ARCH__
  return shared_address(p);
#else
  return role.address_of(p);
#endif
}

/// Makes this thread's stores to shared memory visible to TMA and wgmma that are started later, by
/// this thread or, behind a barrier, by others.
template <class Role>
PIPE_HD PIPE_INLINE void fence_async_proxy([[maybe_unused]] Role& role) {
#ifdef __CUDA_ARCH__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  role.fence_async_proxy();
#endif
}

}  // namespace pp::cuda
