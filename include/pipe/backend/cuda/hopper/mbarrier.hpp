// SPDX-License-Identifier: BSL-1.0
//
// Barriers in shared memory (mbarrier) that threads and copies arrive at. A phase ends when all
// arrivals of it, and all bytes that were announced, are there; then the next one begins. A thread
// waits for the end of a phase by its parity: 0 the first, 1 the second, 0 the third ...
//
// needs: no thread is two phases behind, as it could not tell them apart
#pragma once

#include <cstdint>

#include <pipe/backend/cuda/hopper/proxy.hpp>

namespace pp::cuda {

/// In shared memory.
struct alignas(8) mbarrier {
  std::uint64_t bits;
};

/// Begins the first phase; each takes `arrivals`. Of one thread, before barriers_are_ready.
template <class Block>
PIPE_HD PIPE_INLINE void begin_barrier([[maybe_unused]] Block& block, mbarrier* b, int arrivals) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals)
               : "memory");
#else
  block.begin_barrier(b, arrivals);
#endif
}
/// What the thread has begun is seen by copies; by other threads behind a barrier of the block.
template <class Block>
PIPE_HD PIPE_INLINE void barriers_are_ready([[maybe_unused]] Block& block) {
#ifdef __CUDA_ARCH__
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
  fence_async_proxy(block);
}

/// One arrival.
template <class Role>
PIPE_HD PIPE_INLINE void arrive([[maybe_unused]] Role& role, mbarrier* b) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
#else
  role.arrive(b, 0);
#endif
}
/// One arrival, which announces the bytes that copies bring in this phase.
template <class Role>
PIPE_HD PIPE_INLINE void arrive_expecting([[maybe_unused]] Role& role, mbarrier* b, int bytes) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)),
               "r"(bytes)
               : "memory");
#else
  role.arrive(b, bytes);
#endif
}

/// Waits for the end of the phase of this parity. What was stored before its arrivals, and what its
/// copies brought, is there.
template <class Role>
PIPE_HD PIPE_INLINE void await_phase([[maybe_unused]] Role& role, mbarrier* b, unsigned parity) {
#ifdef __CUDA_ARCH__
  unsigned const at = shared_address(b);
  unsigned done;
  do {  // the instruction itself waits for a while
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(at), "r"(parity)
        : "memory");
  } while (done == 0);
#else
  role.await_phase(b, parity);
#endif
}

/// The stages of a ring of buffers, in turn, and the parity of the phase that a turn waits for.
struct ring_place {
  int stage = 0;
  unsigned parity = 0;
  template <int Stages>
  PIPE_HD PIPE_INLINE void advance() {
    if (++stage == Stages) stage = 0, parity ^= 1;
  }
};

}  // namespace pp::cuda
