// SPDX-License-Identifier: BSL-1.0
//
// Blocks whose warps have roles: one thread starts copies (the producer), and warpgroups multiply
// the copied slabs (consumers). Roles synchronise at mbarriers, not in phases, so that copies,
// tensor cores and epilogues overlap. The code of a role is for its own threads only.
//
//     block.phase(...);                     // all threads: barriers begin
//     split_roles(block, [&](auto& producer) { ... }, [&](auto& consumer) { ... });
//
// On the CPU each role is a fibre, which runs until it waits; then other roles run.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/hopper/wgmma.hpp>

namespace pp::cuda {

/// The threads of a block: the producer's warpgroup, which is the first, and the warpgroups of
/// consumers.
constexpr int threads_of_roles(int consumers) { return (1 + consumers) * warpgroup_size; }

#ifdef __CUDACC__

/// The role of the thread that starts copies.
template <class Body>
class device_producer {
 public:
  using shared_type = typename Body::shared;
  __device__ explicit device_producer(device_block<Body>& in) : in_(in) {}
  __device__ __forceinline__ extent position() const { return in_.position(); }
  __device__ __forceinline__ shared_type& shared() const { return in_.shared(); }

 private:
  device_block<Body>& in_;
};

/// The role of a consumer, as an object of each of its 128 threads: with phases of its own.
template <class Body>
class device_consumer {
 public:
  using state = typename Body::state;
  using shared_type = typename Body::shared;
  __device__ device_consumer(device_block<Body>& in, int number) : in_(in), number_(number) {}
  __device__ __forceinline__ extent position() const { return in_.position(); }
  __device__ __forceinline__ shared_type& shared() const { return in_.shared(); }
  /// The number of the consumer, from 0.
  __device__ __forceinline__ int number() const { return number_; }
  __device__ __forceinline__ state& mine() { return in_.mine(); }

  /// Runs f(thread of the warpgroup, state), then a barrier of the warpgroup.
  template <class F>
  __device__ __forceinline__ void phase(F f) {
    part(f);
    asm volatile("bar.sync %0, %1;" ::"r"(1 + number_), "n"(warpgroup_size) : "memory");
  }
  template <class F>
  __device__ __forceinline__ void part(F f) {
    f(int(threadIdx.x) % warpgroup_size, mine());
  }

 private:
  device_block<Body>& in_;
  int number_;
};

#endif  // __CUDACC__

/// Runs produce(producer) by one thread of the first warpgroup, and consume(consumer) by each of
/// the other warpgroups, to the end of all of them.
///
/// shape: a block of threads_of_roles(Body::consumers)
/// needs: on a device: code for sm_90a. With two consumers a thread begins with 168 registers; the
///        producer's warps keep 40, and the consumers' take 232
template <class Block, class Produce, class Consume>
PIPE_HD PIPE_INLINE void split_roles(Block& block, Produce produce, Consume consume) {
#ifdef __CUDA_ARCH__
  using body = typename Block::body;
  int const warp = __shfl_sync(0xffffffffu, int(threadIdx.x) / warp_size, 0);
  if (warp < warpgroup_size / warp_size) {
    if constexpr (body::consumers == 2) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp != 0) return;
    unsigned is_first;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.b32 %0, 1, 0, p;\n}"
                 : "=r"(is_first));
    if (is_first == 0) return;
    device_producer<body> producer(block);
    produce(producer);
  } else {
    if constexpr (body::consumers == 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    device_consumer<body> consumer(block, warp / (warpgroup_size / warp_size) - 1);
    consume(consumer);
  }
#else
  block.split_roles(produce, consume);
#endif
}

}  // namespace pp::cuda
