// SPDX-License-Identifier: BSL-1.0
//
// Kernel bodies, each written once for a block of threads: phases with a barrier between them. On
// the device a phase is this thread's part of it, followed by __syncthreads(); on the CPU it is a
// loop over all threads, in any order. So tests run every body without a GPU, and one that misses a
// barrier, or reads what was never written, gives another result there.
//
//     struct some_kernel {
//       static constexpr int threads = 256;    // of a block
//       static constexpr extent blocks = ...;  // of the grid
//       struct state { float x; };             // registers, kept from phase to phase
//       struct shared { float of[threads]; };  // what the threads of a block share
//
//       template <class Block>
//       PIPE_HD static void run(Block& block, arguments const& a) {
//         block.phase([&](int thread, state& mine) { mine.x = block.shared().of[thread] = ...; });
//         block.phase([&](int thread, state& mine) { ... block.shared().of[255 - thread] ... });
//       }
//     };
//
// The code between phases is the same for all threads: loops and branches there depend on nothing
// that differs between them. A warp's threads also exchange values of their states without shared
// memory, and multiply matrices that are spread over them: atoms (warp.hpp, matrix.hpp, copy.hpp),
// called between phases too.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/arguments.hpp>

namespace pp::cuda {

/// Threads that run in step.
inline constexpr int warp_size = 32;

/// For bodies whose threads keep or share nothing.
struct nothing {};

/// The number or address stays in a register: where a loop uses it, the compiler does not compute
/// it again.
template <class T>
PIPE_HD PIPE_INLINE void hold([[maybe_unused]] T& value) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 8)
    asm("" : "+l"(value));
  else
    asm("" : "+r"(value));
#endif
}

/// The shared memory that a block may have on every GPU from sm_80 on: sm_86, sm_89 and sm_120 have
/// no more.
inline constexpr long least_shared_bytes = 99 * 1024;

/// Bytes of shared memory of a block of a kernel.
template <class Body>
inline constexpr long shared_bytes =
    std::is_empty_v<typename Body::shared> ? 0 : long(sizeof(typename Body::shared));

#ifdef __CUDACC__

/// A block on the device, as one of its threads sees it.
template <class Body>
class device_block {
 public:
  using body = Body;
  using state = typename Body::state;
  using shared_type = typename Body::shared;

  __device__ explicit device_block(shared_type& s) : shared_(s) {}

  /// The block's number in the grid, from 0.
  __device__ __forceinline__ extent position() const { return extent(blockIdx.x); }
  __device__ __forceinline__ shared_type& shared() const { return shared_; }

  /// f(thread, state) for every thread; when it returns all of them are done.
  template <class F>
  __device__ __forceinline__ void phase(F f) {
    f(int(threadIdx.x), mine_);
    __syncthreads();
  }
  /// The same without the barrier: what other threads do in this phase has not been seen by any
  /// thread.
  template <class F>
  __device__ __forceinline__ void part(F f) {
    f(int(threadIdx.x), mine_);
  }
  /// For atoms: this thread's state.
  __device__ __forceinline__ state& mine() { return mine_; }

 private:
  shared_type& shared_;
  state mine_;
};

#endif  // __CUDACC__

}  // namespace pp::cuda
