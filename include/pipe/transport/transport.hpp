// SPDX-License-Identifier: BSL-1.0
//
// The seam between ranks. A transport says how the ranks of a pipeline wait for each other, how a
// value gets from one to another, and which ranks live in this process. Machines do not know more
// than this about the other ranks.
//
// Where a received value lies is a property of an edge: between two chunks of one rank it is read
// where it was written; between two ranks it is read there too if the transport shares memory, and
// in a slot of the receiver's own if it copies. The memory plan has those slots.
#pragma once

#include <concepts>

#include <pipe/base/config.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp {

/// The progress of a chunk, counted in micro-batches, each milestone in order.
enum class milestone : unsigned char {
  forward,         ///< its result is there
  input_gradient,  ///< the gradient of its input is there
  release          ///< it will not read its input, nor the gradient it got, again
};

/// A range of one rank's arena that another rank reads: `from` in the arena of its maker, and, for
/// a transport that copies, `to` in that of its reader.
///
/// shape: byte offsets from the start of the arenas
struct transfer {
  int from_rank = 0, to_rank = 0;
  long from = 0, to = 0, bytes = 0;
};

/// Data and meetings, for every transport. All waits end with `failed`, once wake_all() was called
/// or soon after, and after the transport's own deadline.
///
/// law: at(x) has the maker's bytes on the reader's thread, from the reader's share(x) on, or,
///      where nothing is copied, from the next wait or meeting on, until the maker's next write
/// law: the ranks that share in a transfer call share() for the transfers between them in one
///      order, so the strictest transport, a rendezvous, does not lock: see communicate()
template <class T>
concept rank_transport = requires(T& t, failure_flag const& failed, transfer const& x, int rank,
                                  int meeting, char* arena, patience const& limits) {
  { T::copies } -> std::convertible_to<bool>;
  typename constants<is_read(T::copies)>;
  T(rank, rank, limits);                                 // ranks, chunks
  { T::is_local(rank) } -> std::same_as<bool>;           // whether this process runs that rank
  t.set_memory(rank, arena);                             // once, before the first run
  t.reset();                                             // before each run, while no rank is in one
  t.wake_all();                                          // after a failure was noted
  { t.share(rank, x, failed) } -> std::same_as<waited>;  // the part of `rank` in a transfer
  { t.at(x) } -> std::same_as<char*>;                    // where the reader finds it
  { t.meet(rank, meeting, failed) } -> std::same_as<waited>;  // see barrier::meet
  { t.call_off(meeting) } -> std::same_as<bool>;              // see barrier::call_off
};

/// A transport that shares memory hands tokens over: a rank publishes its milestones, and others
/// wait for them. One that copies hands values over, by share(), in the order that communicate()
/// derives; its header includes schedule/communication.hpp.
template <class T>
concept transport = rank_transport<T> &&
                    (T::copies || requires(T& t, milestone m, int n, failure_flag const& failed) {
                      t.publish(n, m, n);  // of a chunk, with a micro-batch
                      { t.wait(n, m, n, failed) } -> std::same_as<waited>;  // until then
                    });

}  // namespace pp
