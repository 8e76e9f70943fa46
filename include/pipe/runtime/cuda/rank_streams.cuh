// SPDX-License-Identifier: BSL-1.0
//
// The streams of the ranks. A rank has a stream for each kind of program, and one of them in use:
// its work is in order, and a device that ranks share prefers kernels that other ranks wait for.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <pipe/graph/graph.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/device_blocks.hpp>

namespace pp::cuda {

/// law: work that is enqueued on of(rank) is in the order in which it is enqueued
class rank_streams {
 public:
  /// A rank that is alone on its device has one stream. numbers: of the devices
  [[gnu::cold]] rank_streams(detail::device_blocks blocks, std::vector<int> numbers)
      : blocks_(blocks), numbers_(std::move(numbers)) {
    for (int r = 0; r < blocks.ranks; ++r) {
      make_current(r);
      int least = 0, greatest = 0;
      check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
      queues_.emplace_back();
      if (blocks.count(blocks.of(r)) == 1)
        queues_.back().lanes.emplace_back();
      else  // in the order of `lane`
        for (int const p : {(least + greatest) / 2, greatest, least})
          queues_.back().lanes.emplace_back(p);
    }
  }

  detail::device_blocks blocks() const { return blocks_; }
  /// Makes the device of a rank the current one, on which its kernels must be launched.
  void make_current(int rank) const {
    if (blocks_.devices > 1)
      check(cudaSetDevice(numbers_[std::size_t(blocks_.of(rank))]), "choice of the device");
  }
  /// The stream for the rank's next work. Its device is the current one from now on.
  cudaStream_t of(int rank) const {
    make_current(rank);
    queue const& mine = queues_[std::size_t(rank)];
    return mine.lanes[mine.lanes.size() == 1 ? 0 : std::size_t(mine.in_use)];
  }
  /// Each rank's first stream is in use. Needs: no rank has work.
  void begin() {
    for (queue& mine : queues_) mine.in_use = lane::forward;
  }
  /// Chooses the rank's stream for a program.
  void enter(int rank, detail::program p) { enter(rank, lane_of(p)); }

  /// Orders all later work of every rank after all work enqueued so far on rank 0, and on the first
  /// rank of its device.
  void fork() {
    for (int k = 1; k < blocks_.devices; ++k) order_after(blocks_.first_rank(k), 0);
    for (int r = 0; r < blocks_.ranks; ++r)
      if (!blocks_.is_first(r)) order_after(r, first_beside(r));
  }
  /// Orders all later work of rank 0, on its first stream, after all work enqueued so far on any
  /// rank.
  void join() {
    enter(0, lane::forward);
    for (int r = 1; r < blocks_.ranks; ++r) order_after(0, r);
  }

  /// Waits until the ranks have finished their work. Throws if a kernel or copy failed.
  void wait() const {
    for (int r = 0; r < blocks_.ranks; ++r)
      check(cudaStreamSynchronize(of(r)), "run of the pipeline");
  }
  /// After a failure: waits until no work on a device accesses host memory, and clears the CUDA
  /// runtime's last error, which the next launch check would report again.
  void drain() const noexcept {
    for (queue const& mine : queues_)
      for (stream const& s : mine.lanes) (void)cudaStreamSynchronize(s);
    (void)cudaGetLastError();
  }

 private:
  /// Other ranks wait for gradients of inputs first, then for outputs; only the end of the step
  /// waits for gradients of weights.
  enum class lane : unsigned char { forward, input_gradient, weight_gradient };
  static lane lane_of(detail::program p) {
    return p == detail::program::forward           ? lane::forward
           : p == detail::program::backward_weight ? lane::weight_gradient
                                                   : lane::input_gradient;
  }
  struct queue {
    std::vector<stream> lanes;
    lane in_use = lane::forward;
    /// Waits take the state of an event when they are enqueued, so that it is reused.
    event hop{};
  };

  int first_beside(int rank) const { return blocks_.first_rank(blocks_.of(rank)); }
  void enter(int rank, lane to) {
    queue& mine = queues_[std::size_t(rank)];
    if (mine.lanes.size() == 1 || mine.in_use == to) return;
    cudaStream_t const before = of(rank);
    mine.in_use = to;
    order_after(of(rank), before, mine.hop);
  }
  void order_after(int waiting, int other) {
    order_after(of(waiting), of(other), queues_[std::size_t(other)].hop);
  }
  static void order_after(cudaStream_t waiting, cudaStream_t other, event const& at) {
    check(cudaEventRecord(at, other), "record of an event");
    check(cudaStreamWaitEvent(waiting, at, 0), "wait for an event");
  }

  detail::device_blocks blocks_;
  std::vector<int> numbers_;   // of devices
  std::vector<queue> queues_;  // by rank
};

}  // namespace pp::cuda
