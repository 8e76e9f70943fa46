// SPDX-License-Identifier: BSL-1.0
//
// The streams of the ranks. A rank has a stream for each kind of program, one of which is in use:
// the rank's work stays in order, and a device that ranks share prefers kernels for which other
// ranks wait.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <pipe/graph/graph.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/runtime/cuda/process_link.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/device_blocks.hpp>

namespace pp::cuda {

/// The streams of the ranks of this process.
///
/// law: work on of(rank) runs in the order in which it is enqueued
class rank_streams {
 public:
  /// Creates the streams; a rank that is alone on its device has one. numbers: of the devices, for
  /// the CUDA runtime. processes: null if there are no other processes
  [[gnu::cold]] rank_streams(detail::local_devices local, std::vector<int> numbers,
                             process_link* processes)
      : local_(local), numbers_(std::move(numbers)), processes_(processes) {
    for (int r = local.first_rank(); r < local.end_rank(); ++r) {
      make_current(r);
      int least = 0, greatest = 0;
      check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities of streams");
      queues_.emplace_back();
      if (local.all.count(local.all.of(r)) == 1)
        queues_.back().streams.emplace_back();
      else  // in the order of `purpose`
        for (int const p : {(least + greatest) / 2, greatest, least})
          queues_.back().streams.emplace_back(p);
    }
  }

  detail::local_devices const& local() const { return local_; }
  /// The first rank of the process, whose streams begin and end a run.
  int root() const { return local_.first_rank(); }
  /// Makes the device of a rank the current one, on which its kernels must be launched.
  void make_current(int rank) const {
    if (local_.count > 1)
      check(cudaSetDevice(numbers_[std::size_t(local_.number(rank))]), "choice of the device");
  }
  /// The stream for the rank's next work. The rank's device is current from now on.
  cudaStream_t of(int rank) const {
    make_current(rank);
    queue const& mine = queue_of(rank);
    return mine.streams[mine.streams.size() == 1 ? 0 : std::size_t(mine.in_use)];
  }
  /// Puts each rank's first stream in use.
  ///
  /// needs: no rank has work on another stream
  void begin() {
    for (queue& mine : queues_) mine.in_use = purpose::forward;
  }
  /// Chooses the rank's stream for a program.
  void enter(int rank, detail::program p) { enter(rank, purpose_of(p)); }

  /// Orders all later work of every rank after all work enqueued so far on the root and on the
  /// first rank of the rank's device.
  void fork() {
    for_each_rank([&](int r) {
      if (r != root() && local_.all.is_first(r)) order_after(r, root());
    });
    for_each_rank([&](int r) {
      if (!local_.all.is_first(r)) order_after(r, local_.all.first_rank(local_.all.of(r)));
    });
  }
  /// Orders all later work of the root, on its first stream, after all work enqueued so far on any
  /// rank.
  void join() {
    enter(root(), purpose::forward);
    for_each_rank([&](int r) {
      if (r != root()) order_after(root(), r);
    });
  }
  /// Orders all later work of every rank, on its first stream, after all work enqueued so far on
  /// any rank.
  void meet() {
    for_each_rank([&](int r) { enter(r, purpose::forward); });
    join();
    fork();
  }
  /// Orders all later work of a stream after all work enqueued so far on a rank.
  void follow(cudaStream_t waiting, int rank) const {
    order_after(waiting, of(rank), queue_of(rank).hop);
  }

  /// Waits until the ranks have finished their work.
  ///
  /// throws: pp::error if a kernel or a copy has failed; rank_error if a process has
  void wait() const {
    for_each_rank([&](int r) { wait_for(of(r), "run of the pipeline"); });
  }
  /// Waits until one stream has finished its work; throws as wait().
  void wait_for(cudaStream_t stream, char const* what) const {
    if (processes_ != nullptr) processes_->wait(stream);
    check(cudaStreamSynchronize(stream), what);
  }
  /// After a failure: waits until no work on a device accesses host memory, and clears the CUDA
  /// runtime's last error, which the check of the next launch would report again.
  void drain() const noexcept {
    for (queue const& mine : queues_)
      for (stream const& s : mine.streams) (void)cudaStreamSynchronize(s);
    (void)cudaGetLastError();
  }

 private:
  /// The streams of a rank. Other ranks wait for input gradients most urgently, then for outputs;
  /// only the end of the step waits for weight gradients.
  enum class purpose : unsigned char { forward, input_gradient, weight_gradient };
  static purpose purpose_of(detail::program p) {
    return p == detail::program::forward           ? purpose::forward
           : p == detail::program::backward_weight ? purpose::weight_gradient
                                                   : purpose::input_gradient;
  }
  struct queue {
    std::vector<stream> streams;
    purpose in_use = purpose::forward;
    /// A wait refers to the record of the event at the time when the wait is enqueued, so one event
    /// is reused.
    event hop{};
  };

  queue const& queue_of(int rank) const { return queues_[std::size_t(rank - root())]; }
  template <class Use>
  void for_each_rank(Use const& use) const {
    for (int r = root(); r < local_.end_rank(); ++r) use(r);
  }
  void enter(int rank, purpose to) {
    queue& mine = queues_[std::size_t(rank - root())];
    if (mine.streams.size() == 1 || mine.in_use == to) return;
    cudaStream_t const before = of(rank);
    mine.in_use = to;
    order_after(of(rank), before, mine.hop);
  }
  void order_after(int waiting, int other) { follow(of(waiting), other); }
  static void order_after(cudaStream_t waiting, cudaStream_t other, event const& at) {
    check(cudaEventRecord(at, other), "record of an event");
    check(cudaStreamWaitEvent(waiting, at, 0), "wait for an event");
  }

  detail::local_devices local_;
  std::vector<int> numbers_;  // of devices
  process_link* processes_;
  std::vector<queue> queues_;  // by rank of the process
};

}  // namespace pp::cuda
