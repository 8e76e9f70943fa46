// SPDX-License-Identifier: BSL-1.0
//
// A rank's part in the streams of a run: when it expects values and gradients, sends them, and
// waits for its slots. Slots are as many as the plan says, so requests can be made before a run.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/schedule/rank_step.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The streams into and out of one rank, during one run.
template <stream_transport Transport>
class streams_of_rank {
 public:
  streams_of_rank(pipeline_description const& d, job const& j, Transport& transport, int rank,
                  failure_flag const& failed)
      : d_(d), j_(j), transport_(transport), rank_(rank), failed_(failed) {}

  /// Expects what fits into the slots, all of which are free.
  void begin() {
    for_each([&](int number, boundary_stream const& s) {
      if (s.first.to_rank != rank_) return;
      for (int mb = 0; mb < s.to_slots && runs(mb); ++mb) transport_.expect(number, mb);
    });
  }
  /// Waits until the slot for the result of an action is free.
  waited free_slot(action const& a) {
    chunk_description const& c = d_.chunk[a.chunk];
    if (a.kind == action_kind::forward && crosses(a.chunk + 1))
      return sent(stream_of(a), a.micro_batch - c.boundary.slots);
    if (makes_input_gradient(a.kind) && crosses(a.chunk - 1))
      return sent(stream_of(a), a.micro_batch - c.gradient.slots);
    return waited::done;
  }
  /// Sends or receives.
  waited run(rank_step const& s) {
    if (s.kind == step_kind::receive)
      return transport_.receive(stream_of(s.of), s.of.micro_batch, failed_);
    transport_.send(stream_of(s.of), s.of.micro_batch);
    return waited::done;
  }
  /// A chunk has released its input and its output's gradient: their slots are for the next.
  void released(int chunk, int micro_batch) {
    chunk_description const& c = d_.chunk[chunk];
    if (crosses(chunk - 1)) expect(values_stream(chunk), micro_batch + c.received.slots);
    if (trains() && crosses(chunk + 1))
      expect(gradients_stream(chunk), micro_batch + c.received_gradient.slots);
  }
  /// Waits until all that was sent is there.
  waited end() {
    int last = d_.micro_batches - 1;
    while (last >= 0 && !runs(last)) --last;
    waited all = waited::done;
    for_each([&](int number, boundary_stream const& s) {
      if (s.first.from_rank == rank_ && all == waited::done) all = sent(number, last);
    });
    return all;
  }

 private:
  bool trains() const { return j_.what == job::kind::train; }
  bool runs(int micro_batch) const {
    return micro_batch < d_.micro_batches && samples_in(d_, j_, micro_batch) > 0;
  }
  bool crosses(int other) const {
    return other >= 0 && other < d_.chunks && d_.chunk[other].rank != rank_;
  }
  /// use(number, stream) for the streams of this run.
  template <class Use>
  void for_each(Use const& use) const {
    for_each_stream(d_, [&](int number, boundary_stream const& s) {
      if (trains() || number % 2 == 0) use(number, s);
    });
  }
  void expect(int number, int micro_batch) {
    if (runs(micro_batch)) transport_.expect(number, micro_batch);
  }
  waited sent(int number, int micro_batch) {
    return micro_batch < 0 ? waited::done : transport_.sent(number, micro_batch, failed_);
  }

  pipeline_description const& d_;
  job const& j_;
  Transport& transport_;
  int rank_;
  failure_flag const& failed_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
