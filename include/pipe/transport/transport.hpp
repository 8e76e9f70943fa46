// SPDX-License-Identifier: BSL-1.0
//
// The interface between ranks. A transport carries values from rank to rank, lets the ranks of a
// pipeline wait for each other, and names the ranks of this process. An executor knows nothing else
// about the other ranks.
//
// The location of a received value is a property of the edge. Between two chunks of one rank, and
// between two ranks of a transport that shares memory, a value is read where it was written. A
// transport that copies delivers the value to a slot in the receiver's arena, which the memory plan
// reserves.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/base/view.hpp>
#include <pipe/transport/process_call.hpp>
#include <pipe/transport/slot_part.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp {

namespace transports {

/// Events in the life of a chunk's micro-batch. A holder of a chunk, a rank that runs it, passes
/// each milestone in the order of its micro-batches.
///
/// The next chunk waits for `forward`, the previous chunk for `input_gradient`; `release` frees a
/// slot of either neighbour: the previous chunk's slot for a value, the next chunk's slot for a
/// gradient. The holders of one chunk wait for each other: for the `weights` of the first holder,
/// once in a run, and for the sums, whose kernels are counted: see sum_order.
enum class milestone : unsigned char {
  forward,         ///< its output is complete
  input_gradient,  ///< the gradient of its input is complete
  release,         ///< its input and its output's gradient are not read any more
  forward_sum,     ///< a kernel of its forward has added to the sums of buffers
  gradient_sum,    ///< a kernel of its backward has added to the gradients of parameters
  weights          ///< its weights and copies of weights have the values that this run reads
};

}  // namespace transports

namespace detail {

inline constexpr int milestone_count = int(milestone::weights) + 1;

}  // namespace detail

namespace transports {

/// A range of one rank's arena that another rank reads: `from` in the producer's arena and, for a
/// transport that copies, `to` in the reader's.
///
/// units: byte offsets from the start of the arenas
struct transfer {
  int from_rank = 0, to_rank = 0;
  long from = 0, to = 0, bytes = 0;
};

/// This process among the processes that run a pipeline: its ranks, which are consecutive, its
/// replica, and its number among the `neighbours`, processes that share its cores, itself included.
struct process_place {
  int first_rank = 0, ranks = 1;
  int neighbours = 1, neighbour = 0;
  int replica = 0, replicas = 1;
  constexpr bool has(int rank) const { return rank >= first_rank && rank < first_rank + ranks; }

  /// Process p of n: of R ranks the ranks from p R / n on, up to (p + 1) R / n. If there are
  /// several times as many processes as ranks, R consecutive processes are a replica.
  ///
  /// needs: at most as many processes as ranks, or a multiple
  static constexpr process_place of(int process, int processes, int ranks) {
    process_place place;
    if (processes > ranks) place.replicas = processes / ranks;
    long const n = processes / place.replicas, p = process % n;
    place.replica = int(process / n);
    place.first_rank = int(p * ranks / n);
    place.ranks = int((p + 1) * ranks / n) - place.first_rank;
    return place;
  }
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
  T(rank, number, limits);                               // ranks; holders of chunks, or streams
  { T::place(rank) } -> std::same_as<process_place>;     // of this process; given: ranks
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

/// A transport between ranks. A transport that shares memory passes tokens: a rank publishes its
/// milestones and other ranks wait for them. A transport that copies passes values by share(), in
/// the order that communicate() derives; its header includes schedule/communication.hpp.
template <class T>
concept transport = rank_transport<T> &&
                    (T::copies || requires(T& t, milestone m, int n, failure_flag const& failed) {
                      t.publish(n, m, n);  // holder, milestone, micro-batch
                      { t.wait(n, m, n, failed) } -> std::same_as<waited>;  // until it is published
                    });

/// The values, or the gradients, that one holder of a chunk sends to a holder of a neighbouring
/// chunk, or a sum that it sends to the next holder of the same chunk: for micro-batches `begin`,
/// begin + step, ..., from a slot of the producer's ring to a slot of the reader's ring. Every
/// from_step-th micro-batch uses the producer's ring in turn, every to_step-th the reader's.
struct boundary_stream {
  transfer first;  ///< between both slots 0
  long from_stride = 0, to_stride = 0;
  int from_slots = 1, to_slots = 1;
  int from_step = 1, to_step = 1, begin = 0, step = 1;
  /// The values in a slot, each a message of its rows that are there; empty: one message of
  /// first.bytes.
  detail::view<slot_part> parts{};

  /// The bytes that travel for a micro-batch of these rows.
  constexpr long bytes_of(row_counts const& rows) const {
    long all = parts.count == 0 ? first.bytes : 0;
    for (slot_part const& p : parts) all += p.bytes_of(rows);
    return all;
  }
  /// Of a micro-batch that travels: its slots, and the transfer between them.
  constexpr int from_slot(int micro_batch) const { return micro_batch / from_step % from_slots; }
  constexpr int to_slot(int micro_batch) const { return micro_batch / to_step % to_slots; }
  constexpr transfer of(int micro_batch) const {
    transfer x = first;
    x.from += from_stride * from_slot(micro_batch);
    x.to += to_stride * to_slot(micro_batch);
    return x;
  }
};

/// A transport that copies while ranks compute. Transfers of boundaries, and of sums between the
/// holders of a chunk, are numbered streams; each side calls its functions for ascending
/// micro-batches of the stream. All other transfers are made by share().
///
/// law: between expect() and receive() the reader's slot belongs to the transport, between send()
///      and sent() the producer's
/// law: neither expect() nor send() waits for another rank
/// law: least() returns in no process before all have called it
/// law: if processes make different calls, the difference is announced before end_call() returns
/// law: a failure that is announced in one process ends every wait in the other processes, where
///      announced() is its text; without a failure announced() is empty
template <class T>
concept stream_transport =
    transport<T> && bool(T::copies) &&
    requires(T& t, failure_flag const& failed, boundary_stream const& s, int n) {
      // Once, after set_memory: all processes have the same plan.
      t.agree(std::uint64_t());
      t.open(n, s);    // stream; after agree(), before the first run
      t.expect(n, n);  // stream, micro-batch: the reader's slot is free
      { t.receive(n, n, failed) } -> std::same_as<waited>;
      t.send(n, n, row_counts());  // the rows that are there, read if the stream has parts
      { t.sent(n, n, failed) } -> std::same_as<waited>;  // this micro-batch and all before
      t.announce(std::string_view());
      { t.announced() } -> std::same_as<std::string>;
      // Around the runs of a call, in all processes: which call it is.
      t.begin_call(detail::process_call());
      t.end_call();
      // What the process does, in words, while the result lives: see process_activity.
      t.during({"in a run", nullptr, nullptr});
      // Between runs, in all processes: bytes from one process to all others; the least of a number
      // in all processes. Processes have numbers; process_of a rank is in the first replica.
      t.broadcast(n, static_cast<char*>(nullptr), 1L);
      { t.process() } -> std::same_as<int>;
      { t.processes() } -> std::same_as<int>;
      { t.process_of(n) } -> std::same_as<int>;
      { t.least(1L) } -> std::same_as<long>;
    };

/// A stream_transport between replicas of a pipeline: see process_place. Each rank exchanges data
/// with the same rank of other replicas, in lanes: sends and receives that are awaited together.
///
/// law: messages of a lane between two replicas arrive in the order in which they are sent
template <class T>
concept replica_transport =
    stream_transport<T> &&
    requires(T& t, failure_flag const& failed, int n, char* to, char const* from, bool (*is_so)()) {
      requires T::lanes > 0;
      t.open_lanes(n, n);  // once: rank, the most messages of a lane to and from each replica
      t.send_to(n, n, n, from, 1L);               // rank, replica, lane, bytes
      t.receive_from(n, n, n, to, 1L);            // before has_met(), as send_to
      { t.has_met(n, n) } -> std::same_as<bool>;  // rank, lane: all of its messages are done
      { t.until(is_so, failed) } -> std::same_as<waited>;  // polls a condition
    };

}  // namespace transports

}  // namespace pp
