// SPDX-License-Identifier: BSL-1.0
//
// Transport between processes. Process p of n runs consecutive ranks, as threads. A boundary value
// is received where the plan has a slot for it, by a persistent request that is started when the
// slot is free; between ranks of one process it is copied once. How messages travel is the matter
// of a parameter: by MPI, or by sockets.
//
// Data moves only inside of calls, so a waiting rank polls; a peer that has failed is not reported
// by it, so processes watch each other, and one that ends a trainer says so.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <sched.h>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/transport/barrier.hpp>
#include <pipe/transport/process/call_ring.hpp>
#include <pipe/transport/process/process_watch.hpp>
#include <pipe/transport/place_in_world.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// See stream_transport. Its calls that wait poll: they spin as `limits` say, then yield, then
/// sleep. Messages: mpi_messages or tcp_messages, whose calls are made while calls() is locked,
/// unless they say otherwise.
///
/// law: streams make and free no request in a step, and allocate nothing
/// law: of the calls to Messages between reset() and the end of a run none waits
template <class Messages>
class process_transport {
  using request = typename Messages::request;

 public:
  static constexpr bool copies = true;
  static constexpr int lanes = 6;

  /// All processes, before there is a trainer, and the place of this one: see place_in_world.
  static auto& world() { return Messages::world(); }
  static process_place place(int ranks) {
    return place_in_world(world(), ranks, Messages::launcher);
  }

  /// Must be called by all processes, in the same order for several trainers.
  [[gnu::cold]] process_transport(int ranks, int streams, patience const& limits)
      : world_(Messages::world()), place_(place(ranks)), ranks_(ranks), streams_(streams),
        limits_{limits.spin, no_deadline}, deadline_(limits.deadline), memory_(ranks),
        channels_(streams), pairs_(long(place_.ranks) * place_.ranks),
        lanes_(long(place_.ranks) * lanes), local_(place_.ranks, limits_) {
    world_.watch().see_ranks(ranks);
    constructs_.emplace(world_.watch(), process_activity{"constructing a trainer"});
    messages_.begin(call_tag() + 1, ranks, waiting());
    world_.watch().join(living_);
  }
  process_transport(process_transport const&) = delete;
  process_transport& operator=(process_transport const&) = delete;
  /// Waits for the other processes to do the same, unless the trainer is broken.
  [[gnu::cold]] ~process_transport() {
    world_.watch().quit(living_);
    if (!messages_.part(calls_begun_)) return;
    std::lock_guard const lock(calls());
    for (channel& c : channels_)
      for (heap_array<request>* of : {&c.receives, &c.sends})
        for (request& r : *of) messages_.free(r);
    ring_.close(messages_);
    messages_.end();
  }

  void set_memory(int rank, char* arena) { memory_[rank] = arena; }

  /// Begins a run: all slots are free, no rank has arrived at a barrier.
  ///
  /// throws: rank_error if a process has failed; the first error of this trainer says why, later
  ///         ones that it is broken
  void reset() {
    if (world_.has_failed()) {
      bool const is_known = is_failure_told_.exchange(true);
      throw_error<rank_error>(
          {is_known ? "this trainer is broken, as a run over several processes has failed: " : "",
           std::string_view(world_.watch().failure())});
    }
    for (channel& c : channels_) c.offered.reset(), c.taken.reset(), c.sent = c.of.begin;
    for (pair& p : pairs_) p.offered.reset(), p.taken.reset();
    local_.reset();
  }
  void wake_all() {
    for (channel& c : channels_) c.offered.wake(), c.taken.wake();
    for (pair& p : pairs_) p.offered.wake(), p.taken.wake();
    local_.wake_all();
  }

  /// Compares a number of the plan with those of the other processes, and then their calls, unless
  /// each makes its own.
  ///
  /// throws: error if another process has another plan
  [[gnu::cold]] void agree(std::uint64_t plan, bool compares_calls = true) {
    messages_.agree(plan, waiting());
    constructs_.reset();
    if (!compares_calls) return;
    std::lock_guard const lock(calls());
    ring_.open(messages_, world_.process(), world_.processes(), call_tag());
  }
  /// See call_ring.
  /// throws: rank_error if another process has failed; end_call() also if it makes another call
  void begin_call(process_call const& c) {
    std::lock_guard const lock(calls());  // where steps overlap, ranks look at it meanwhile
    ++calls_begun_;
    if (!ring_.is_open()) return;
    ring_.begin(messages_, c);
    is_running_ = true;
  }
  void end_call() {
    if (!ring_.is_open()) return;
    wait_whole(ring_.heard);
    wait_whole(ring_.told);  // sockets send within calls only, and the next one may be far away
    look();
    if (world_.has_failed()) throw rank_error(announced());
    is_running_ = false;
  }

  // ---- streams ----

  /// Makes the requests of a stream, one for each slot on the side that this process has. Its
  /// number is the tag of its messages: between two processes those of a tag arrive in order.
  [[gnu::cold]] void open(int number, boundary_stream const& s) {
    std::lock_guard const lock(calls());
    channel& c = channels_[number];
    c.of = s;
    if (is_from_elsewhere(s.first)) {
      c.receives = heap_array<request>(s.to_slots);
      for (int i = 0; i < s.to_slots; ++i)
        messages_.prepare_receive(c.receives[i], peer_of(s.first.from_rank), number,
                                  memory_[s.first.to_rank] + s.first.to + i * s.to_stride,
                                  s.first.bytes);
    } else if (is_to_elsewhere(s.first)) {
      c.sends = heap_array<request>(s.from_slots);
      for (int i = 0; i < s.from_slots; ++i)
        messages_.prepare_send(c.sends[i], peer_of(s.first.to_rank), number,
                               memory_[s.first.from_rank] + s.first.from + i * s.from_stride,
                               s.first.bytes);
    }
  }
  /// Starts the request of a slot, before its message can come: one that comes earlier would be
  /// received to memory of MPI's and copied.
  void expect(int number, int micro_batch) {
    channel& c = channels_[number];
    if (c.receives.size() > 0) start(c.receives[c.of.to_slot(micro_batch)]);
  }
  /// Waits for the message; between ranks of this process, for its sender, and copies it.
  waited receive(int number, int micro_batch, failure_flag const& failed) {
    channel& c = channels_[number];
    if (c.receives.size() > 0) return complete(c.receives[c.of.to_slot(micro_batch)], failed);
    waited const w = wait(c.offered, micro_batch + 1, failed);
    if (w != waited::done) return w;
    copy(c.of.of(micro_batch));
    c.taken.publish(micro_batch + 1);
    return waited::done;
  }
  /// Starts to send. MPI may read the slot until sent() says otherwise.
  void send(int number, int micro_batch) {
    channel& c = channels_[number];
    if (c.sends.size() > 0)
      start(c.sends[c.of.from_slot(micro_batch)]);
    else
      c.offered.publish(micro_batch + 1);
  }
  /// Waits until this micro-batch's slot, and those before it, are free.
  waited sent(int number, int micro_batch, failure_flag const& failed) {
    channel& c = channels_[number];
    if (c.sends.size() == 0) return wait(c.taken, micro_batch + 1, failed);
    for (; c.sent <= micro_batch; c.sent += c.of.step)
      if (waited const w = complete(c.sends[c.of.from_slot(c.sent)], failed); w != waited::done)
        return w;
    return waited::done;
  }

  // ---- other transfers ----

  /// The tag names both ranks: those of a process make their transfers in no common order.
  waited share(int rank, transfer const& x, failure_flag const& failed) {
    if (x.from_rank == x.to_rank || (rank != x.from_rank && rank != x.to_rank)) return waited::done;
    if (!is_from_elsewhere(x) && !is_to_elsewhere(x)) return meet(rank, x, failed);
    request one{};
    int const tag = streams_ + x.from_rank * ranks_ + x.to_rank;
    {
      std::lock_guard const lock(calls());
      if (rank == x.from_rank)
        messages_.send(one, peer_of(x.to_rank), tag, memory_[rank] + x.from, x.bytes);
      else
        messages_.receive(one, peer_of(x.from_rank), tag, memory_[rank] + x.to, x.bytes);
    }
    return complete(one, failed);
  }
  /// Within a rank a value is read where it is; from another one, where it was received.
  char* at(transfer const& x) const {
    return memory_[x.to_rank] + (x.from_rank == x.to_rank ? x.from : x.to);
  }

  // ---- between replicas ----

  [[gnu::cold]] void open_lanes(int rank, int messages) {
    for (int n = 0; n < lanes; ++n)
      lane_of(rank, n).requests = heap_array<request>(2L * (place_.replicas - 1) * messages);
  }
  void send_to(int rank, int replica, int number, char const* data, long bytes) {
    std::lock_guard const lock(calls());
    messages_.send(*next_of(lane_of(rank, number)), process_of(rank, replica), tag_of(rank, number),
                   data, bytes);
  }
  void receive_from(int rank, int replica, int number, char* data, long bytes) {
    std::lock_guard const lock(calls());
    messages_.receive(*next_of(lane_of(rank, number)), process_of(rank, replica),
                      tag_of(rank, number), data, bytes);
  }
  bool has_met(int rank, int number) {
    std::lock_guard const lock(calls());
    if (world_.has_failed()) return false;
    lane& l = lane_of(rank, number);
    if (!messages_.are_complete(l.requests.begin(), l.count)) return false;
    l.count = 0;
    return true;
  }
  /// Polls `is_so` until it is. Returns earlier if the run or another process has failed, or at the
  /// deadline, 0: there is none; time in which the process was stopped does not count.
  template <class Condition>
  waited until(Condition const& is_so, failure_flag const& failed,
               std::chrono::milliseconds deadline = {}) {
    constexpr std::chrono::milliseconds before_sleep(1), longest_look(20);
    auto before = std::chrono::steady_clock::now();
    std::chrono::nanoseconds waiting{};
    for (long polls = 1;; ++polls) {
      if (is_so()) return waited::done;
      if (polls % 16 == 0) look();
      if (failed.load(std::memory_order_acquire) || world_.has_failed()) return waited::failed;
      if (polls % 16 != 0) continue;
      auto const now = std::chrono::steady_clock::now();
      waiting += now - before < longest_look ? now - before : longest_look;
      before = now;
      if (deadline.count() > 0 && std::chrono::ceil<std::chrono::milliseconds>(waiting) > deadline)
        return waited::too_long;
      if (waiting > before_sleep)
        sleep_for(50'000);
      else if (waiting > limits_.spin)
        sched_yield();
    }
  }

  // ---- between runs ----

  int process() const { return world_.process(); }
  int processes() const { return world_.processes(); }
  /// The process of a rank, of the first replica.
  int process_of(int rank) const { return process_of(rank, 0); }
  /// From a process to all others: its bytes at `data`. For calls between runs.
  ///
  /// throws: rank_error if another process has failed
  void broadcast(int from, char* data, long bytes) {
    if (world_.processes() == 1) return;
    auto const passes = during({"passing values between processes"});
    messages_.broadcast(from, data, bytes, waiting());
  }
  /// The least of a number in all processes. For calls between runs, as broadcast().
  ///
  /// throws: as broadcast
  long least(long here) {
    auto const agrees = during({"agreeing with the other processes"});
    return messages_.least(here, waiting());
  }

  /// The ranks of a process meet, then the processes, then the ranks again.
  waited arrive_and_wait(int rank, int number, failure_flag const& failed) {
    waited w = local_.arrive_and_wait(2 * number - 1, failed);
    if (w == waited::done && rank == place_.first_rank && world_.processes() > 1) {
      {
        std::lock_guard const lock(calls());
        messages_.start_barrier();
      }
      w = until(
          [&] {
            std::lock_guard const lock(calls());
            return !world_.has_failed() && messages_.has_passed_barrier();
          },
          failed);
    }
    return w != waited::done ? w : local_.arrive_and_wait(2 * number, failed);
  }
  /// Between processes a barrier cannot be cancelled: a process that gives up has left the others,
  /// which have perhaps passed it.
  bool cancel_barrier(int number) { return local_.cancel(2 * number); }

  /// Tells the other processes of a failure here, of which an exception is on its way.
  void announce(std::string_view text) {
    is_failure_told_ = true;
    world_.announce(text);
  }
  /// The text of a failure, wherever it was, for an exception; empty if there is none.
  std::string announced() {
    if (world_.has_failed()) is_failure_told_ = true;
    return world_.watch().failure();
  }
  /// Says what this process does, until the end of the scope, to those that miss another one.
  process_watch::doing during(process_activity what) { return world_.during(what); }

 private:
  /// The lock of messages, which threads of all ranks of this process take.
  std::mutex& calls() { return messages_.calls(); }
  /// A stream: requests by slot on the side that this process has, or counters if it has both.
  struct channel {
    boundary_stream of;
    heap_array<request> receives, sends;
    int sent = 0;  // the first micro-batch whose send is not known to be complete
    progress offered, taken;
  };
  /// The other transfers between two ranks of this process.
  struct pair {
    progress offered, taken;
  };

  /// Messages between replicas in flight, of one rank.
  struct lane {
    heap_array<request> requests;
    int count = 0;
  };
  lane& lane_of(int rank, int number) {
    return lanes_[long(rank - place_.first_rank) * lanes + number];
  }
  /// Tags of lanes follow those of streams and of other transfers.
  long first_lane_tag() const { return streams_ + long(ranks_) * ranks_; }
  int call_tag() const { return int(first_lane_tag() + long(ranks_) * lanes); }
  int tag_of(int rank, int number) const { return int(first_lane_tag() + rank * lanes + number); }
  static request* next_of(lane& l) { return &l.requests[l.count++]; }

  /// Whether the reader is here, and the producer is not; the reverse below.
  bool is_from_elsewhere(transfer const& x) const {
    return place_.has(x.to_rank) && !place_.has(x.from_rank);
  }
  bool is_to_elsewhere(transfer const& x) const {
    return place_.has(x.from_rank) && !place_.has(x.to_rank);
  }
  /// The inverse of place().
  int process_of(int rank, int replica) const {
    int const each = world_.processes() / place_.replicas;
    return replica * each + int(((rank + 1L) * each - 1) / ranks_);
  }
  int peer_of(int rank) const { return process_of(rank, place_.replica); }
  void copy(transfer const& x) {
    std::memcpy(memory_[x.to_rank] + x.to, memory_[x.from_rank] + x.from, std::size_t(x.bytes));
  }
  /// A transfer between two ranks of this process: the producer offers, and waits until the reader
  /// has copied.
  waited meet(int rank, transfer const& x, failure_flag const& failed) {
    pair& p = pairs_[long(x.from_rank - place_.first_rank) * place_.ranks + x.to_rank -
                     place_.first_rank];
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

  /// The program ends, perhaps in the middle of a run, which then never ends.
  [[gnu::cold]] void leave() {
    if (!world_.has_failed()) messages_.tell_end(calls_begun_ - (is_running_ ? 1 : 0));
  }
  /// Fails a run that another process does not take part in, or takes for another call.
  void look() {
    {
      std::lock_guard const lock(calls());
      if (world_.has_failed()) return;
      messages_.hear(calls_begun_);
      if (!ring_.differs(messages_)) return;
    }
    world_.watch().fail(ring_.text());
  }
  /// needs: the request is prepared and not started
  void start(request& r) {
    std::lock_guard const lock(calls());
    messages_.start(r);
  }
  waited wait(progress& p, int n, failure_flag const& failed) { return p.wait(n, limits_, failed); }
  /// A wait for an operation of all processes between runs.
  ///
  /// throws: rank_error if another process has failed, or does not come before the deadline
  void wait_whole(request& r) {
    failure_flag const never{false};
    waited const w = complete(r, never, deadline_);
    if (w == waited::too_long)
      announce(sentence({"timed out after ", deadline_.count() / 1000,
                         " s waiting for another process, ",
                         std::string_view(world_.watch().activity())})
                   .begin());
    if (w != waited::done) throw rank_error(announced());
  }
  /// Waits for a request of all processes, and says for how long at most.
  struct waiting_for_all {
    process_transport& of;
    void operator()(request& r) const { of.wait_whole(r); }
    std::chrono::milliseconds deadline() const { return of.deadline_; }
  };
  waiting_for_all waiting() { return {*this}; }
  /// Polls until a request is complete: see until().
  waited complete(request& r, failure_flag const& failed, std::chrono::milliseconds deadline = {}) {
    return until(
        [&] {
          std::lock_guard const lock(calls());
          return !world_.has_failed() && messages_.are_complete(&r, 1);
        },
        failed, deadline);
  }

  std::remove_reference_t<decltype(Messages::world())>& world_;
  std::optional<process_watch::doing> constructs_;  // until all agree
  process_place place_;
  int ranks_, streams_;
  patience limits_;
  std::chrono::milliseconds deadline_;        // of calls between runs
  std::atomic<long> calls_begun_{0};          // of which replicas make different numbers of runs
  std::atomic<bool> is_running_{false};       // a call
  std::atomic<bool> is_failure_told_{false};  // by an exception, to the caller
  heap_array<char*> memory_;                  // by rank; null for one of another process
  heap_array<channel> channels_;              // by stream
  heap_array<pair> pairs_;                    // of this process's ranks
  heap_array<lane> lanes_;                    // of this process's ranks, if there are replicas
  barrier local_;
  call_ring<Messages> ring_;
  living_trainer living_{[](void* self) { static_cast<process_transport*>(self)->leave(); }, this};
  Messages messages_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
