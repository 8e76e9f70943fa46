// SPDX-License-Identifier: BSL-1.0
//
// A transport as strict as MPI and NCCL allow theirs to be: each ordered pair of ranks has a
// channel that holds a few bytes, a send ends when its receive has taken everything, messages come
// in order and carry no tag. What is sent between two ranks in two orders, or with two lengths, is
// found out. Ranks read no memory of each other.
#pragma once

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <pipe/schedule/communication.hpp>
#include <pipe/transport/barrier.hpp>
#include <pipe/transport/transport.hpp>

namespace test_transports {

class messages {
 public:
  static constexpr bool copies = true;
  static constexpr long channel_bytes = 48;

  messages(int ranks, int, pp::transports::patience const& limits)
      : ranks_(ranks), limits_(limits), memory_(std::size_t(ranks)),
        channels_(std::size_t(ranks) * std::size_t(ranks)), barrier_(ranks, limits) {}

  static constexpr pp::transports::process_place place(int ranks) { return {0, ranks}; }
  void set_memory(int rank, char* arena) { memory_[std::size_t(rank)] = arena; }

  void reset() {
    for (channel& c : channels_) c.filled.reset(), c.emptied.reset(), c.turn[0] = c.turn[1] = 0;
    barrier_.reset();
  }
  void wake_all() {
    for (channel& c : channels_) c.filled.wake(), c.emptied.wake();
    barrier_.wake_all();
  }

  pp::transports::waited share(int rank, pp::transports::transfer const& x,
                               pp::transports::failure_flag const& failed) {
    if (x.from_rank == x.to_rank) return pp::transports::waited::done;
    if (rank == x.from_rank) return send(x, failed);
    if (rank == x.to_rank) return receive(x, failed);
    return pp::transports::waited::done;
  }
  /// Within a rank a value is read where it is; from another one, where it was received.
  char* at(pp::transports::transfer const& x) const {
    return memory_[std::size_t(x.to_rank)] + (x.from_rank == x.to_rank ? x.from : x.to);
  }

  pp::transports::waited arrive_and_wait(int, int number,
                                         pp::transports::failure_flag const& failed) {
    return barrier_.arrive_and_wait(number, failed);
  }
  bool cancel_barrier(int number) { return barrier_.cancel(number); }

 private:
  /// Filled and emptied in turn. turn[0] is the sender's count of pieces, turn[1] the receiver's.
  struct channel {
    pp::detail::progress filled, emptied;
    int turn[2]{};
    std::array<char, channel_bytes> piece{};
  };
  channel& between(pp::transports::transfer const& x) {
    return channels_[std::size_t(x.from_rank) * std::size_t(ranks_) + std::size_t(x.to_rank)];
  }

  pp::transports::waited put(channel& c, void const* from, long bytes,
                             pp::transports::failure_flag const& failed) {
    std::memcpy(c.piece.data(), from, std::size_t(bytes));
    c.filled.publish(++c.turn[0]);
    return c.emptied.wait(c.turn[0], limits_, failed);
  }
  pp::transports::waited take(channel& c, void* to, long bytes,
                              pp::transports::failure_flag const& failed) {
    if (pp::transports::waited const w = c.filled.wait(c.turn[1] + 1, limits_, failed);
        w != pp::transports::waited::done)
      return w;
    std::memcpy(to, c.piece.data(), std::size_t(bytes));
    c.emptied.publish(++c.turn[1]);
    return pp::transports::waited::done;
  }
  /// Calls use(first byte, bytes) for the pieces of a message, until one is not done.
  template <class Use>
  static pp::transports::waited in_pieces(long bytes, Use use) {
    for (long at = 0; at < bytes; at += channel_bytes)
      if (pp::transports::waited const w =
              use(at, bytes - at < channel_bytes ? bytes - at : channel_bytes);
          w != pp::transports::waited::done)
        return w;
    return pp::transports::waited::done;
  }
  pp::transports::waited send(pp::transports::transfer const& x,
                              pp::transports::failure_flag const& failed) {
    channel& c = between(x);
    if (pp::transports::waited const w = put(c, &x, sizeof x, failed);
        w != pp::transports::waited::done)
      return w;
    char const* const from = memory_[std::size_t(x.from_rank)] + x.from;
    return in_pieces(x.bytes,
                     [&](long at, long bytes) { return put(c, from + at, bytes, failed); });
  }
  pp::transports::waited receive(pp::transports::transfer const& x,
                                 pp::transports::failure_flag const& failed) {
    channel& c = between(x);
    pp::transports::transfer sent;
    if (pp::transports::waited const w = take(c, &sent, sizeof sent, failed);
        w != pp::transports::waited::done)
      return w;
    if (sent.from != x.from || sent.to != x.to || sent.bytes != x.bytes)
      throw std::logic_error("a rank received another message than it expected");
    char* const to = memory_[std::size_t(x.to_rank)] + x.to;
    return in_pieces(x.bytes, [&](long at, long bytes) { return take(c, to + at, bytes, failed); });
  }

  int ranks_;
  pp::transports::patience limits_;
  std::vector<char*> memory_;
  std::vector<channel> channels_;
  pp::detail::barrier barrier_;
};
static_assert(sizeof(pp::transports::transfer) <= messages::channel_bytes);
static_assert(pp::transports::transport<messages>);

}  // namespace test_transports

/// The option that names it.
struct Messages {
  using transport = test_transports::messages;
};
