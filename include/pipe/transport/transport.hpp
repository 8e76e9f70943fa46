// SPDX-License-Identifier: BSL-1.0
//
// The interface between ranks. A transport defines how the ranks of a pipeline wait for each other,
// how a value reaches another rank, and which ranks run in this process. Machines know nothing else
// about the other ranks.
//
// The location of a received value is a property of the edge. Between two chunks of one rank, and
// between two ranks of a transport that shares memory, it is read where it was written; a transport
// that copies delivers it to a slot in the receiver's arena, which the memory plan reserves.
#pragma once

#include <concepts>

#include <pipe/base/config.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp {

/// Events in the life of a chunk's micro-batch. A chunk passes each milestone in the order of its
/// micro-batches.
///
/// The next chunk waits for `forward`, the previous one for `input_gradient`; `release` frees a
/// slot of either neighbour: the previous chunk's for a value, the next one's for a gradient.
enum class milestone : unsigned char {
  forward,         ///< its output is complete
  input_gradient,  ///< the gradient of its input is complete
  release          ///< its input and its output's gradient are not read any more
};

/// A range of one rank's arena that another rank reads: `from` in the producer's arena and, for a
/// transport that copies, `to` in the reader's.
///
/// units: byte offsets from the start of the arenas
struct transfer {
  int from_rank = 0, to_rank = 0;
  long from = 0, to = 0, bytes = 0;
};

/// Requirements on every transport: transfers and barriers. Every wait ends with `failed` soon
/// after wake_all(), or with `too_long` at the transport's deadline.
///
/// law: at(x) points to the producer's bytes on the reader's thread, from the reader's share(x) on,
///      or, if nothing is copied, from the next wait or barrier on, until the producer writes again
/// law: the ranks of a transfer call share() for the transfers between them in the same order, so
///      even a rendezvous transport does not deadlock: see communicate()
template <class T>
concept rank_transport = requires(T& t, failure_flag const& failed, transfer const& x, int rank,
                                  int number, char* arena, patience const& limits) {
  { T::copies } -> std::convertible_to<bool>;
  typename detail::constants<detail::is_read(T::copies)>;
  T(rank, rank, limits);                                 // ranks, chunks
  { t.is_local(rank) } -> std::same_as<bool>;            // whether this process runs the rank
  t.set_memory(rank, arena);                             // once, before the first run
  t.reset();                                             // before each run, while no rank is in one
  t.wake_all();                                          // after the failure flag was set
  { t.share(rank, x, failed) } -> std::same_as<waited>;  // the send or receive of `rank`
  { t.at(x) } -> std::same_as<char*>;                    // the reader's address of the data
  {
    t.arrive_and_wait(rank, number, failed)
  } -> std::same_as<waited>;                           // see barrier::arrive_and_wait
  { t.cancel_barrier(number) } -> std::same_as<bool>;  // see barrier::cancel
};

/// A transport between ranks. If it shares memory, it passes tokens: a rank publishes its
/// milestones and others wait for them. If it copies, it passes values by share(), in the order
/// that communicate() derives; its header includes schedule/communication.hpp.
template <class T>
concept transport = rank_transport<T> &&
                    (T::copies || requires(T& t, milestone m, int n, failure_flag const& failed) {
                      t.publish(n, m, n);  // chunk, milestone, micro-batch
                      { t.wait(n, m, n, failed) } -> std::same_as<waited>;  // until it is published
                    });

/// A transport that copies while ranks compute. It knows the transfers between two chunks as
/// streams: 2c has the values into chunk c, 2c + 1 the gradients into it, micro-batch n in slot
/// n mod k of the reader and of the producer, each with a k of its own.
///
/// law: of the streams' transfers, expect() comes before receive() on the reader's side, send() before
///      sent() on the producer's; between them both slots belong to the transport. A receive() that
///      was not expected counts as if it had been just before.
/// law: none of expect() and send() waits for another rank
template <class T>
concept overlapping_transport =
    transport<T> && bool(T::copies) &&
    requires(T& t, failure_flag const& failed, transfer const& x, int n) {
      t.expect(x, n, n);  // stream, reader's slot
      { t.receive(x, n, n, failed) } -> std::same_as<waited>;
      t.send(x, n, n);                                  // stream, producer's slot
      { t.sent(n, n, failed) } -> std::same_as<waited>;  // at once if the slot is not being sent
    };

}  // namespace pp
