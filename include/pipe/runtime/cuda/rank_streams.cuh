// SPDX-License-Identifier: BSL-1.0
//
// The streams of the ranks that share a GPU. A rank has a stream for each kind of program, and one
// of them in use: its work is in order, and the device prefers kernels that other ranks wait for.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/base/heap_array.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/runtime/cuda/resources.cuh>

namespace pp::cuda {

/// law: work that is enqueued on of(rank) is in the order in which it is enqueued
class rank_streams {
 public:
  /// A rank that is alone has one stream.
  [[gnu::cold]] explicit rank_streams(int ranks) : ranks_(ranks), in_use_(ranks), hop_(ranks) {
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
    // In the order of `lane`.
    int const priority[] = {(least + greatest) / 2, greatest, least};
    for (int r = 0; r < ranks; ++r) {
      for (int const p : priority)
        if (streams_.empty() || ranks > 1) streams_.emplace_back(ranks > 1 ? p : 0);
    }
  }

  /// The stream for the rank's next work.
  cudaStream_t of(int rank) const {
    if (ranks_ == 1) return streams_[0];
    return streams_[std::size_t(rank * lanes) + std::size_t(in_use_[rank])];
  }
  /// Each rank's first stream is in use. Needs: no rank has work.
  void begin() {
    for (lane& mine : in_use_) mine = lane::forward;
  }
  /// Chooses the rank's stream for a program.
  void enter(int rank, detail::program p) { enter(rank, lane_of(p)); }

  /// Orders all later work of every rank after all work enqueued so far on rank 0.
  void fork() {
    for (int r = 1; r < ranks_; ++r) order_after(of(r), of(0), hop_[0]);
  }
  /// Orders all later work of rank 0, on its first stream, after all work enqueued so far on any
  /// rank.
  void join() {
    enter(0, lane::forward);
    for (int r = 1; r < ranks_; ++r) order_after(of(0), of(r), hop_[r]);
  }

  /// Waits until the ranks have finished their work. Throws if a kernel or copy failed.
  void wait() const {
    for (int r = 0; r < ranks_; ++r) check(cudaStreamSynchronize(of(r)), "run of the pipeline");
  }
  /// After a failure: waits until no work on the device accesses host memory, and clears the CUDA
  /// runtime's last error, which the next launch check would report again.
  void drain() const noexcept {
    for (stream const& s : streams_) (void)cudaStreamSynchronize(s);
    (void)cudaGetLastError();
  }

 private:
  /// Other ranks wait for gradients of inputs first, then for outputs; only the end of the step
  /// waits for gradients of weights.
  enum class lane : unsigned char { forward, input_gradient, weight_gradient };
  static constexpr int lanes = 3;
  static lane lane_of(detail::program p) {
    return p == detail::program::forward           ? lane::forward
           : p == detail::program::backward_weight ? lane::weight_gradient
                                                   : lane::input_gradient;
  }
  void enter(int rank, lane to) {
    lane& mine = in_use_[rank];
    if (ranks_ == 1 || mine == to) return;
    cudaStream_t const before = of(rank);
    mine = to;
    order_after(of(rank), before, hop_[rank]);
  }
  static void order_after(cudaStream_t waiting, cudaStream_t other, event const& at) {
    check(cudaEventRecord(at, other), "record of an event");
    check(cudaStreamWaitEvent(waiting, at, 0), "wait for an event");
  }

  int ranks_;
  std::vector<stream> streams_;      // by rank, then by lane
  detail::heap_array<lane> in_use_;  // by rank
  /// By rank. Waits take the state of an event when they are enqueued, so that it is reused.
  detail::heap_array<event> hop_;
};

}  // namespace pp::cuda
