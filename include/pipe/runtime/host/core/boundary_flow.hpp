// SPDX-License-Identifier: BSL-1.0
//
// The streams of boundaries where steps overlap: micro-batches are numbered through all steps of a
// segment, and sends and receives are in no list. A rank expects values that are certain to come as
// far as its slots have room. It receives before an action the values that the action reads, and
// sends a value as soon as it is complete.
//
// No action waits longer than with shared memory, for which check_progress proves the schedule. An
// action waits for a message, which the producer sends when it would have published a milestone,
// and for its own slot, which is free as soon as the reader has room for the value in it.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/schedule/action.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The boundary streams of the ranks of this process. A method that takes a rank is called on its
/// thread; numbers of micro-batches begin with 0 in a segment.
///
/// needs: each chunk has one holder
/// law: when all ranks have passed end(), no message is under way and none is expected
template <class Transport>
class boundary_flow {
 public:
  boundary_flow(pipeline_description const& d, Transport& transport)
      : d_(d), transport_(transport), ends_(2L * d.chunks * d.pairs) {
    for_each_stream(d, [&](int number, boundary_stream const& s) { ends_[number].of = s; });
  }

  /// Begins a segment: all slots are free, and no micro-batch is certain to come.
  void begin(int rank) {
    for (both_ends& e : ends_) {
      if (e.of.first.to_rank == rank) e.next = e.received = e.known = 0, e.room = e.of.to_slots;
      if (e.of.first.from_rank == rank) e.sent = 0;
    }
  }
  /// Micro-batches below `known` are certain to come, and behind them more(chunk) values of a
  /// chunk.
  template <class More>
  void expect(int rank, int known, More const& more) {
    for (int number = 0; number < ends_.size(); ++number)
      if (both_ends& e = ends_[number]; crosses(number) && e.of.first.to_rank == rank) {
        int const chunk = number / 2;
        e.known = known + (number == values_stream(chunk) ? more(chunk - 1) : 0);
        expect_known(number);
      }
  }
  /// Waits for the value that an action reads from another rank, after see(chunk), the chunk that
  /// makes the value. No value is received twice, though an action in a pair waits twice.
  template <class See>
  waited receive(action const& a, See const& see, failure_flag const& failed) {
    bool const forward = a.kind == action_kind::forward;
    int const number = forward                        ? values_stream(a.chunk)
                       : makes_input_gradient(a.kind) ? gradients_stream(a.chunk)
                                                      : -1;
    if (number < 0 || !crosses(number)) return waited::done;
    see(a.chunk + (forward ? -1 : 1));
    return receive(number, a.micro_batch, failed);
  }
  /// Notes that a chunk has passed a milestone: sends a result, of which these rows are there, or
  /// gives a slot to the next value.
  void publish(int rank, int chunk, milestone m, int micro_batch, row_counts const& rows) {
    switch (m) {
      case milestone::forward: return send(values_stream(chunk + 1), micro_batch, rows);
      case milestone::input_gradient: return send(gradients_stream(chunk - 1), micro_batch, rows);
      case milestone::release:
        for (int number : {values_stream(chunk), gradients_stream(chunk)})
          if (crosses(number) && ends_[number].of.first.to_rank == rank) {
            ends_[number].room = micro_batch + 1 + ends_[number].of.to_slots;
            expect_known(number);
          }
        return;
      case milestone::forward_sum:
      case milestone::gradient_sum:
      case milestone::weights: return;
    }
  }
  /// Receives the values that were certain to come and that no action has read, and waits until all
  /// that the rank has sent has arrived.
  waited end(int rank, failure_flag const& failed) {
    for (int number = 0; number < ends_.size(); ++number)
      if (both_ends& e = ends_[number]; crosses(number) && e.of.first.to_rank == rank)
        while (e.received < e.known) {
          if (e.room == e.received) ++e.room;  // the value in the slot is not read any more
          expect_known(number);
          if (waited const w = receive(number, e.received, failed); w != waited::done) return w;
        }
    for (int number = 0; number < ends_.size(); ++number)
      if (both_ends const& e = ends_[number]; e.of.first.from_rank == rank && e.sent > 0)
        if (waited const w = transport_.sent(number, e.sent - 1, failed); w != waited::done)
          return w;
    return waited::done;
  }

 private:
  /// A stream, and the first micro-batch that is not expected (next), not received, without room,
  /// not certain to come (known), and not sent. The producer's thread has `sent`, the reader's
  /// thread the others.
  struct both_ends {
    boundary_stream of;
    int next = 0, received = 0, room = 0, known = 0;
    alignas(64) int sent = 0;
  };

  /// Whether there is a stream of this number, between two ranks.
  bool crosses(int number) const {
    return number >= 0 && number < ends_.size() && ends_[number].of.first.bytes > 0;
  }
  void expect_known(int number) {
    both_ends& e = ends_[number];
    for (; e.next < e.known && e.next < e.room; ++e.next) transport_.expect(number, e.next);
  }
  waited receive(int number, int micro_batch, failure_flag const& failed) {
    both_ends& e = ends_[number];
    if (micro_batch < e.received) return waited::done;
    waited const w = transport_.receive(number, micro_batch, failed);
    if (w == waited::done) e.received = micro_batch + 1;
    return w;
  }
  void send(int number, int micro_batch, row_counts const& rows) {
    if (!crosses(number)) return;
    transport_.send(number, micro_batch, rows);
    ends_[number].sent = micro_batch + 1;
  }

  pipeline_description const& d_;
  Transport& transport_;
  heap_array<both_ends> ends_;  // by number
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
