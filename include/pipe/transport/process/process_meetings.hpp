// SPDX-License-Identifier: BSL-1.0
//
// Meetings of ranks in several processes: exchanges between replicas of a pipeline, in lanes, and
// the barrier of a run.
#pragma once

#include <mutex>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/transport/barrier.hpp>
#include <pipe/transport/process/process_calls.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The lanes and the barrier of one trainer: see replica_transport.
template <class Messages>
class process_meetings {
  using request = typename Messages::request;

 public:
  static constexpr int lanes = 6;  ///< of each rank

  [[gnu::cold]] process_meetings(process_calls<Messages>& all, process_place const& here,
                                 patience const& limits)
      : all_(all), here_(here), lanes_(long(here.ranks) * lanes), local_(here.ranks, limits) {}

  // ---- between replicas ----

  [[gnu::cold]] void open_lanes(int rank, int messages) {
    for (int n = 0; n < lanes; ++n)
      lane_of(rank, n).requests = heap_array<request>(2L * (here_.replicas - 1) * messages);
  }
  void send_to(int rank, int replica, int number, char const* data, long bytes) {
    std::lock_guard const lock(all_.calls());
    all_.messages().send(*next_of(lane_of(rank, number)), all_.process_of(rank, replica),
                         all_.tags().of_lane(rank, number), data, bytes);
  }
  void receive_from(int rank, int replica, int number, char* data, long bytes) {
    std::lock_guard const lock(all_.calls());
    all_.messages().receive(*next_of(lane_of(rank, number)), all_.process_of(rank, replica),
                            all_.tags().of_lane(rank, number), data, bytes);
  }
  bool has_met(int rank, int number) {
    std::lock_guard const lock(all_.calls());
    if (all_.has_failed()) return false;
    lane& l = lane_of(rank, number);
    if (!all_.messages().are_complete(l.requests.begin(), l.count)) return false;
    l.count = 0;
    return true;
  }

  // ---- the barrier ----

  /// The ranks of a process meet, then the processes, then the ranks again.
  waited arrive_and_wait(int rank, int number, failure_flag const& failed) {
    waited w = local_.arrive_and_wait(2 * number - 1, failed);
    if (w == waited::done && rank == here_.first_rank && all_.processes() > 1) {
      {
        std::lock_guard const lock(all_.calls());
        all_.messages().start_barrier();
      }
      w = all_.until(
          [&] {
            std::lock_guard const lock(all_.calls());
            return !all_.has_failed() && all_.messages().has_passed_barrier();
          },
          failed);
    }
    return w != waited::done ? w : local_.arrive_and_wait(2 * number, failed);
  }
  /// Between processes a barrier cannot be cancelled: a process that gives up has left the others,
  /// which may have passed the barrier.
  bool cancel_barrier(int number) { return local_.cancel(2 * number); }

 protected:
  /// Before a run: no rank has arrived at a barrier.
  void reset_barrier() { local_.reset(); }
  void wake_barrier() { local_.wake_all(); }

 private:
  /// Messages between replicas in flight, of one rank.
  struct lane {
    heap_array<request> requests;
    int count = 0;
  };
  lane& lane_of(int rank, int number) {
    return lanes_[long(rank - here_.first_rank) * lanes + number];
  }
  static request* next_of(lane& l) { return &l.requests[l.count++]; }

  process_calls<Messages>& all_;
  process_place here_;
  heap_array<lane> lanes_;  // of this process's ranks, if there are replicas
  barrier local_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
