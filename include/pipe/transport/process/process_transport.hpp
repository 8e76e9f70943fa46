// SPDX-License-Identifier: BSL-1.0
//
// Transport between processes. Process p of n runs consecutive ranks, as threads. Messages is how
// messages travel: by MPI, or by sockets.
#pragma once

#include <mutex>

#include <pipe/base/config.hpp>
#include <pipe/transport/process/process_calls.hpp>
#include <pipe/transport/process/process_meetings.hpp>
#include <pipe/transport/process/process_streams.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A replica_transport. Messages: see process_calls.
template <class Messages>
class process_transport : public process_streams<Messages>,
                          public process_meetings<Messages>,
                          public process_calls<Messages> {
  using all_streams = process_streams<Messages>;
  using all_meetings = process_meetings<Messages>;
  using all_calls = process_calls<Messages>;

 public:
  static constexpr bool copies = true;

  /// Must be called by all processes, in the same order for several trainers.
  [[gnu::cold]] process_transport(int ranks, int streams, patience const& limits)
      : process_transport(message_tags{ranks, streams, all_meetings::lanes}, limits,
                          all_calls::place(ranks)) {}
  /// Waits for the other processes to do the same, unless the trainer is broken.
  [[gnu::cold]] ~process_transport() {
    if (!this->part()) return;
    std::lock_guard const lock(this->calls());
    this->free_streams();
    this->end();
  }

  /// Begins a run: all slots are free, no rank has arrived at a barrier.
  ///
  /// throws: as require_sound
  void reset() {
    this->require_sound();
    this->reset_streams();
    this->reset_barrier();
  }
  void wake_all() {
    this->wake_streams();
    this->wake_barrier();
  }

 private:
  process_transport(message_tags const& tags, patience const& limits, process_place const& here)
      : all_streams(*this, here, tags), all_meetings(*this, here, {limits.spin, no_deadline}),
        all_calls(here, tags, limits) {
    this->begin();
  }
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
