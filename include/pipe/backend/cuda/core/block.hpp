// SPDX-License-Identifier: BSL-1.0
//
// Kernel bodies, each written once for a block of threads: phases with a barrier between them. On
// the device a phase is the part of one thread, followed by __syncthreads(); on the CPU a phase is
// a loop over all threads, in any order. So tests run every body without a GPU, and a body that
// misses a barrier, or reads memory that was never written, gives another result there.
//
//     struct some_kernel {
//       static constexpr int threads = 256; // of a block static constexpr extent blocks = ...; //
//       of the grid struct state { float x; }; // registers, kept from phase to phase struct shared
//       { float of[threads]; }; // shared by the threads of a block
//
//       template <class Block>
//       PIPE_HD static void run(Block& block, arguments const& a) {
//         block.phase([&](int thread, state& mine) { mine.x = block.shared().of[thread] = ...; });
//         block.phase([&](int thread, state& mine) { ... block.shared().of[255 - thread] ... });
//       }
//     };
//
// The code between phases is the same for all threads: loops and branches there depend on nothing
// that differs between threads. Atoms (warp.hpp, matmul/matrix.hpp, cp_async.hpp) are called
// between phases too: a warp's threads exchange values of their states without shared memory, or
// multiply matrices that are spread over the warp.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/arguments.hpp>

namespace pp::cuda {

/// Threads of a warp, which run together.
inline constexpr int warp_size = 32;

/// The state, or shared memory, of bodies that need none.
struct nothing {};

/// Keeps a number or an address in a register, so that the compiler does not recompute it in a
/// loop.
template <class T>
PIPE_HD PIPE_INLINE void hold([[maybe_unused]] T& value) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(T) == 8)
    asm("" : "+l"(value));
  else
    asm("" : "+r"(value));
#endif
}

/// The bytes of shared memory that a block may have on every GPU from sm_80 on: the limit of sm_86,
/// sm_89 and sm_120.
inline constexpr long least_shared_bytes = 99 * 1024;

/// Bytes of shared memory of a block of a kernel.
template <class Body>
inline constexpr long shared_bytes =
    std::is_empty_v<typename Body::shared> ? 0 : long(sizeof(typename Body::shared));

#ifdef __CUDACC__

/// A block on the device, as an object of each of its threads.
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

  /// Runs f(thread, state) for every thread; on return, all threads have run it.
  template <class F>
  __device__ __forceinline__ void phase(F f) {
    f(int(threadIdx.x), mine_);
    __syncthreads();
  }
  /// The same without the barrier: no thread may rely on what other threads write in this part.
  template <class F>
  __device__ __forceinline__ void part(F f) {
    f(int(threadIdx.x), mine_);
  }
  /// The state of this thread, for atoms.
  __device__ __forceinline__ state& mine() { return mine_; }

 private:
  shared_type& shared_;
  state mine_;
};

#endif  // __CUDACC__

}  // namespace pp::cuda
