// SPDX-License-Identifier: BSL-1.0
//
// The link of a rank to the others during a run: its waits for them, and what it publishes, sends
// and receives. The three kinds of transports differ here and nowhere else in the executor.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/fingerprint.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/schedule/rank_step.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Compares the pipelines of all processes, and opens the streams between ranks.
///
/// throws: error if another process has another pipeline
template <stream_transport Transport>
[[gnu::cold]] void open_streams(pipeline_description const& d, Transport& transport) {
  transport.agree(fingerprint(d));
  for_each_stream(d, [&](int number, boundary_stream const& s) { transport.open(number, s); });
}

/// Gives the output of an inference to all processes.
template <stream_transport Transport>
void share_output(pipeline_description const& d, job const& j, Transport& transport) {
  if (j.what == job::kind::infer)
    transport.broadcast(transport.process_of(d.chunk[d.chunks - 1].rank),
                        static_cast<char*>(j.output), j.samples * (d.output_bytes / d.samples));
}

/// One rank's link to the others, in one run.
///
/// A transport that shares memory passes tokens: actions wait for milestones of other chunks. One
/// that copies gets the steps of communicate(), whose order leaves nothing to wait for but sends
/// and receives. If it is a stream_transport, requests are made before they are awaited: a rank
/// expects what its slots have room for, and waits for a slot of its own before an action that
/// writes to it.
template <transport Transport>
class rank_link {
  static constexpr bool streams = stream_transport<Transport>;

 public:
  rank_link(pipeline_description const& d, job const& j, Transport& transport, int rank,
            failure_flag const& failed)
      : d_(d), j_(j), transport_(transport), rank_(rank), failed_(failed) {}

  /// Begins the run: all slots are free.
  void begin() const {
    if constexpr (streams)
      for_each_stream_of_run([&](int number, boundary_stream const& s) {
        if (s.first.to_rank != rank_) return;
        for (int mb = 0; mb < s.to_slots; ++mb) expect(number, mb);
      });
  }
  /// Waits for what an action needs, after see(chunk), the chunk that it waits for.
  template <class See>
  waited await(action const& a, See const& see) const {
    waited all = waited::done;
    if constexpr (!Transport::copies)
      for_each_need(d_, a, [&](int chunk, milestone m, int mb) {
        see(chunk);
        if (all == waited::done) all = transport_.wait(chunk, m, mb, failed_);
      });
    if constexpr (streams) {
      chunk_description const& c = d_.chunk[a.chunk];
      bool const forward = a.kind == action_kind::forward;
      int const to = forward ? a.chunk + 1 : makes_input_gradient(a.kind) ? a.chunk - 1 : -1;
      if (crosses(to)) {
        see(to);
        all = sent(stream_of(a), a.micro_batch - (forward ? c.boundary : c.gradient).slots);
      }
    }
    return all;
  }
  /// Sends or receives the result of an action.
  ///
  /// needs: s is a send or a receive
  waited run(rank_step const& s) const {
    if constexpr (streams) {
      if (s.kind == step_kind::receive)
        return transport_.receive(stream_of(s.of), s.of.micro_batch, failed_);
      transport_.send(stream_of(s.of), s.of.micro_batch);
      return waited::done;
    } else {
      return share(result_of(d_, s.of));
    }
  }
  /// The rank's part of another transfer; nothing if it has none.
  waited share(transfer const& x) const { return transport_.share(rank_, x, failed_); }
  /// A chunk has passed a milestone with a micro-batch: others may read its values, or, after
  /// `release`, send the next ones to its slots.
  void publish([[maybe_unused]] int chunk, [[maybe_unused]] milestone m,
               [[maybe_unused]] int micro_batch) const {
    if constexpr (!Transport::copies) transport_.publish(chunk, m, micro_batch);
    if constexpr (streams) {
      if (m != milestone::release) return;
      chunk_description const& c = d_.chunk[chunk];
      if (crosses(chunk - 1)) expect(values_stream(chunk), micro_batch + c.received.slots);
      if (trains() && crosses(chunk + 1))
        expect(gradients_stream(chunk), micro_batch + c.received_gradient.slots);
    }
  }
  /// Waits until all that was sent is there.
  waited end() const {
    waited all = waited::done;
    if constexpr (streams) {
      int last = d_.micro_batches - 1;
      while (last >= 0 && !runs(last)) --last;
      for_each_stream_of_run([&](int number, boundary_stream const& s) {
        if (s.first.from_rank == rank_ && all == waited::done) all = sent(number, last);
      });
    }
    return all;
  }

 private:
  bool trains() const { return j_.what == job::kind::train; }
  bool runs(int micro_batch) const {
    return micro_batch < d_.micro_batches && samples_in(d_, j_, micro_batch) > 0;
  }
  /// Whether there is a chunk of this number on another rank.
  bool crosses(int chunk) const {
    return chunk >= 0 && chunk < d_.chunks && d_.chunk[chunk].rank != rank_;
  }
  template <class Use>
  void for_each_stream_of_run(Use const& use) const {
    for_each_stream(d_, [&](int number, boundary_stream const& s) {
      if (trains() || number % 2 == 0) use(number, s);
    });
  }
  void expect(int number, int micro_batch) const {
    if (runs(micro_batch)) transport_.expect(number, micro_batch);
  }
  waited sent(int number, int micro_batch) const {
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
