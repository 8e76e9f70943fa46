// SPDX-License-Identifier: BSL-1.0
//
// Barriers in shared memory (mbarrier) at which threads and copies arrive. A phase ends when all of
// its arrivals have come, and all bytes that were announced; then the next phase begins. A thread
// waits for the end of a phase by the phase's parity: 0 for the first, 1 for the second, 0 for the
// third ...
//
// needs: no thread is two phases behind, since phases of equal parity cannot be told apart
#pragma once

#include <cstdint>

#include <pipe/backend/cuda/hopper/proxy.hpp>

namespace pp::cuda {

/// A barrier, in shared memory.
struct alignas(8) mbarrier {
  std::uint64_t bits;
};

/// Begins the first phase; every phase takes `arrivals` arrivals. Called by one thread, before
/// barriers_are_ready.
template <class Block>
PIPE_HD PIPE_INLINE void begin_barrier([[maybe_unused]] Block& block, mbarrier* b, int arrivals) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals)
               : "memory");
#else
  block.begin_barrier(b, arrivals);
#endif
}
/// Makes the barriers that this thread has begun visible to copies, and, behind a barrier of the
/// block, to other threads.
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
/// One arrival, which also announces the bytes that copies will write in this phase.
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

/// Waits for the end of the phase with this parity. Stores before the phase's arrivals, and the
/// bytes of its copies, are then visible.
template <class Role>
PIPE_HD PIPE_INLINE void await_phase([[maybe_unused]] Role& role, mbarrier* b, unsigned parity) {
#ifdef __CUDA_ARCH__
  unsigned const at = shared_address(b);
  unsigned done;
  do {  // the instruction waits for a limited time
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

/// A place in a ring of buffers: the stage, and the parity of the phase to wait for, which changes
/// with each round.
struct ring_place {
  int stage = 0;
  unsigned parity = 0;
  template <int Stages>
  PIPE_HD PIPE_INLINE void advance() {
    if (++stage == Stages) stage = 0, parity ^= 1;
  }
};

}  // namespace pp::cuda
