// SPDX-License-Identifier: BSL-1.0
//
// Boundary values between ranks, which may be in two processes or in one. From another process a
// value is received where the plan has a slot for it, by a persistent request that is started when
// the slot is free. Between ranks of one process a value is copied once. Of a stream with parts the
// rows that are there travel, a message for each part; the receiver has room for the longest
// samples, so that only the sender's requests are made anew for each micro-batch.
#pragma once

#include <cstring>
#include <mutex>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/transport/process/process_calls.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The streams and the other transfers of one trainer: see stream_transport.
///
/// law: streams without parts make and free no request in a step; none allocates
template <class Messages>
class process_streams {
  using request = typename Messages::request;

 public:
  /// shape: memory: [ranks], of which a rank of another process has none
  [[gnu::cold]] process_streams(process_calls<Messages>& all, process_place const& here,
                                message_tags const& tags)
      : all_(all), here_(here), memory_(tags.ranks), channels_(tags.streams),
        pairs_(long(here.ranks) * here.ranks) {}

  void set_memory(int rank, char* arena) { memory_[rank] = arena; }

  /// Makes the requests of a stream, one for each slot on the side that this process has. Between
  /// two processes the messages of a stream arrive in order.
  [[gnu::cold]] void open(int number, boundary_stream const& s) {
    std::lock_guard const lock(all_.calls());
    channel& c = channels_[number];
    c.of = s;
    int const tag = all_.tags().of_stream(number);
    if (is_from_elsewhere(s.first)) {
      c.receives = heap_array<request>(c.messages() * s.to_slots);
      for (int i = 0; i < c.receives.size(); ++i) {
        slot_part const p = c.part(i % c.messages());
        all_.messages().prepare_receive(
            c.receives[i], peer_of(s.first.from_rank), tag,
            memory_[s.first.to_rank] + s.first.to + i / c.messages() * s.to_stride + p.offset,
            p.bytes, p.axis > 0);
      }
    } else if (is_to_elsewhere(s.first)) {
      c.sends = heap_array<request>(c.messages() * s.from_slots);
      for (int i = 0; i < c.sends.size() && !c.has_parts(); ++i)
        all_.messages().prepare_send(c.sends[i], peer_of(s.first.to_rank), tag,
                                     memory_[s.first.from_rank] + s.first.from + i * s.from_stride,
                                     s.first.bytes);
    } else {
      c.rows = heap_array<row_counts>(c.has_parts() ? s.from_slots : 0);
    }
  }
  /// Starts the request of a slot, before its message can come: MPI would receive an earlier
  /// message to memory of its own, and copy it.
  void expect(int number, int micro_batch) {
    channel& c = channels_[number];
    if (c.receives.size() == 0) return;
    request* const first = c.receives.begin() + c.of.to_slot(micro_batch) * c.messages();
    std::lock_guard const lock(all_.calls());
    for (int p = 0; p < c.messages(); ++p) all_.messages().start(first[p]);
  }
  /// Waits for the message; between ranks of this process, for its sender, and copies the value.
  waited receive(int number, int micro_batch, failure_flag const& failed) {
    channel& c = channels_[number];
    if (c.receives.size() > 0) return complete(c, c.receives, c.of.to_slot(micro_batch), failed);
    waited const w = wait(c.offered, micro_batch + 1, failed);
    if (w != waited::done) return w;
    transfer const x = c.of.of(micro_batch);
    for (int p = 0; p < c.messages(); ++p) {
      slot_part const part = c.part(p);
      long const bytes =
          c.has_parts() ? part.bytes_of(c.rows[c.of.from_slot(micro_batch)]) : part.bytes;
      copy({x.from_rank, x.to_rank, x.from + part.offset, x.to + part.offset, bytes});
    }
    c.taken.publish(micro_batch + 1);
    return waited::done;
  }
  /// Starts to send, of a stream with parts these rows. MPI may read the slot until sent() has
  /// returned for it.
  void send(int number, int micro_batch, row_counts const& rows) {
    channel& c = channels_[number];
    int const slot = c.of.from_slot(micro_batch);
    if (c.sends.size() == 0) {
      if (c.has_parts()) c.rows[slot] = rows;
      c.offered.publish(micro_batch + 1);
      return;
    }
    std::lock_guard const lock(all_.calls());
    if (!c.has_parts()) return all_.messages().start(c.sends[slot]);
    transfer const x = c.of.of(micro_batch);
    for (int p = 0; p < c.messages(); ++p)
      all_.messages().send(
          c.sends[slot * c.messages() + p], peer_of(x.to_rank), all_.tags().of_stream(number),
          memory_[x.from_rank] + x.from + c.part(p).offset, c.part(p).bytes_of(rows));
  }
  /// Waits until the slots of this micro-batch, and of those before it, are free.
  waited sent(int number, int micro_batch, failure_flag const& failed) {
    channel& c = channels_[number];
    if (c.sends.size() == 0) return wait(c.taken, micro_batch + 1, failed);
    for (; c.sent <= micro_batch; c.sent += c.of.step)
      if (waited const w = complete(c, c.sends, c.of.from_slot(c.sent), failed); w != waited::done)
        return w;
    return waited::done;
  }

  /// A transfer that is in no stream. Its tag names both ranks, as the ranks of a process make
  /// their transfers in no common order.
  waited share(int rank, transfer const& x, failure_flag const& failed) {
    if (x.from_rank == x.to_rank || (rank != x.from_rank && rank != x.to_rank)) return waited::done;
    if (!is_from_elsewhere(x) && !is_to_elsewhere(x)) return meet(rank, x, failed);
    request one{};
    int const tag = all_.tags().of_transfer(x);
    {
      std::lock_guard const lock(all_.calls());
      if (rank == x.from_rank)
        all_.messages().send(one, peer_of(x.to_rank), tag, memory_[rank] + x.from, x.bytes);
      else
        all_.messages().receive(one, peer_of(x.from_rank), tag, memory_[rank] + x.to, x.bytes);
    }
    return all_.complete(one, failed);
  }
  /// The address of a value: within a rank, where it is; of another rank, where it was received.
  char* at(transfer const& x) const {
    return memory_[x.to_rank] + (x.from_rank == x.to_rank ? x.from : x.to);
  }

 protected:
  /// Before a run: all slots are free.
  void reset_streams() {
    for (channel& c : channels_) c.offered.reset(), c.taken.reset(), c.sent = c.of.begin;
    for (pair& p : pairs_) p.offered.reset(), p.taken.reset();
  }
  void wake_streams() {
    for (channel& c : channels_) c.offered.wake(), c.taken.wake();
    for (pair& p : pairs_) p.offered.wake(), p.taken.wake();
  }
  /// needs: the lock
  [[gnu::cold]] void free_streams() {
    for (channel& c : channels_) {
      for (request& r : c.receives) all_.messages().free(r);
      if (c.has_parts()) continue;  // each send has freed its request
      for (request& r : c.sends) all_.messages().free(r);
    }
  }

 private:
  /// A stream: requests by slot and part on the side that this process has, or counters if it has
  /// both.
  struct channel {
    boundary_stream of;
    heap_array<request> receives, sends;
    heap_array<row_counts> rows;  // if this process has both sides of parts: by the producer's slot
    bool has_parts() const { return of.parts.count > 0; }
    int messages() const { return has_parts() ? of.parts.count : 1; }  // of a slot
    slot_part part(int p) const { return has_parts() ? of.parts[p] : slot_part{0, of.first.bytes}; }
    int sent = 0;  // the first micro-batch whose send is not known to be complete
    progress offered, taken;
  };
  /// The other transfers between two ranks of this process.
  struct pair {
    progress offered, taken;
  };

  /// Whether the reader is here, and the producer is not; is_to_elsewhere: the reverse.
  bool is_from_elsewhere(transfer const& x) const {
    return here_.has(x.to_rank) && !here_.has(x.from_rank);
  }
  bool is_to_elsewhere(transfer const& x) const {
    return here_.has(x.from_rank) && !here_.has(x.to_rank);
  }
  int peer_of(int rank) const { return all_.process_of(rank, here_.replica); }
  void copy(transfer const& x) {
    std::memcpy(memory_[x.to_rank] + x.to, memory_[x.from_rank] + x.from, std::size_t(x.bytes));
  }
  /// A transfer between two ranks of this process: the producer offers, and waits until the reader
  /// has copied.
  waited meet(int rank, transfer const& x, failure_flag const& failed) {
    int const first = here_.first_rank;
    pair& p = pairs_[long(x.from_rank - first) * here_.ranks + x.to_rank - first];
    if (rank == x.from_rank) {
      p.offered.advance();
      return wait(p.taken, p.offered.now(), failed);
    }
    waited const w = wait(p.offered, progress::after(p.taken.now()), failed);
    if (w != waited::done) return w;
    copy(x);
    p.taken.advance();
    return waited::done;
  }
  /// Waits for the messages of a slot.
  waited complete(channel const& c, heap_array<request>& of, int slot, failure_flag const& failed) {
    waited w = waited::done;
    for (int p = 0; p < c.messages() && w == waited::done; ++p)
      w = all_.complete(of[slot * c.messages() + p], failed);
    return w;
  }
  waited wait(progress& p, int n, failure_flag const& failed) {
    return p.wait(n, all_.limits(), failed);
  }

  process_calls<Messages>& all_;
  process_place here_;
  heap_array<char*> memory_;      // by rank; null for one of another process
  heap_array<channel> channels_;  // by stream
  heap_array<pair> pairs_;        // of this process's ranks
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
