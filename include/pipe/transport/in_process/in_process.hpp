// SPDX-License-Identifier: BSL-1.0
//
// Transport between threads of one process. They share an address space, so a hand-off moves no
// data: the producer writes a value into a slot of its own arena and publishes its progress, and
// the reader reads the value there. The slot is free again when the reader publishes its release.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/transport/barrier.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// Shared-memory transport: one progress counter for each holder of a chunk and milestone, on cache
/// lines of their own, and a barrier.
class in_process {
 public:
  static constexpr bool copies = false;

  /// limits: of waits for milestones and of barriers
  in_process(int ranks, int holders, patience const& limits)
      : memory_(ranks), board_(long(milestone_count) * holders), limits_(limits),
        barrier_(ranks, limits) {}

  static constexpr process_place place(int ranks) { return {0, ranks}; }
  void set_memory(int rank, char* arena) { memory_[rank] = arena; }

  /// Sets all progress to zero. To be called between runs, while no rank waits.
  void reset() {
    for (progress& p : board_) p.reset();
    barrier_.reset();
  }
  /// Wakes every thread that waits, so that it looks at the failure flag.
  void wake_all() {
    for (progress& p : board_) p.wake();
    barrier_.wake_all();
  }

  /// The release half of a milestone: everything that this thread has written before is visible to
  /// the threads that await the milestone.
  ///
  /// needs: for each holder and milestone, ascending micro-batches and one thread: the counter only
  ///        grows
  void publish(int holder, milestone m, int micro_batch) {
    // Plus 1: a counter of 0 means that no micro-batch has passed.
    progress_of(holder, m).publish(progress::after(micro_batch));
  }
  /// Waits until `holder` has passed `m` with `micro_batch`. Returns at once for a negative
  /// micro-batch: the first uses of a slot have no predecessor.
  waited wait(int holder, milestone m, int micro_batch, failure_flag const& failed) {
    return progress_of(holder, m).wait(progress::after(micro_batch), limits_, failed);
  }

  /// No operation: the reader reads the producer's memory.
  waited share(int, transfer const&, failure_flag const&) const { return waited::done; }
  /// needs: set_memory(x.from_rank) has been called
  char* at(transfer const& x) const { return memory_[x.from_rank] + x.from; }

  waited arrive_and_wait(int, int number, failure_flag const& failed) {
    return barrier_.arrive_and_wait(number, failed);
  }
  bool cancel_barrier(int number) { return barrier_.cancel(number); }

 private:
  /// The counter of a holder and a milestone.
  progress& progress_of(int holder, milestone m) {
    return board_[long(milestone_count) * holder + int(m)];
  }

  heap_array<char*> memory_;  // by rank
  /// By holder, then milestone.
  heap_array<progress> board_;
  patience limits_;
  barrier barrier_;
};

}  // namespace detail

static_assert(transports::transport<detail::in_process>);

}  // namespace pp
PIPE_OPTIMIZED_END
