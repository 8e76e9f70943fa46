// SPDX-License-Identifier: BSL-1.0
//
// The life of a trainer that several processes share: its construction, the calls that all
// processes make, the waits for other processes, and its end. Data moves only inside of calls, so a
// rank that waits polls. A failure of a peer is no result of a poll: the processes watch each
// other, and a process that ends a trainer tells the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <sched.h>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/transport/place_in_world.hpp>
#include <pipe/transport/process/call_ring.hpp>
#include <pipe/transport/process/process_watch.hpp>
#include <pipe/transport/running_time.hpp>
#include <pipe/transport/transport.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Tags of messages between two processes: one for each stream, for each pair of ranks that make
/// other transfers, for each lane of a rank, and for the ring of calls; Messages use those from
/// count() on.
struct message_tags {
  int ranks = 0, streams = 0, lanes = 0;  // lanes: of each rank

  int of_stream(int number) const { return number; }
  int of_transfer(transfer const& x) const { return streams + x.from_rank * ranks + x.to_rank; }
  int of_lane(int rank, int number) const { return int(first_lane() + rank * lanes + number); }
  int of_calls() const { return int(first_lane() + long(ranks) * lanes); }
  int count() const { return of_calls() + 1; }

 private:
  long first_lane() const { return streams + long(ranks) * ranks; }
};

/// The calls of one trainer. Messages: mpi_messages or tcp_messages, whose functions are called
/// while calls() is locked, unless they say otherwise.
///
/// law: of the calls to Messages between reset() and the end of a run none waits
template <class Messages>
class process_calls {
 public:
  using request = typename Messages::request;

  /// All processes, before there is a trainer, and the place of this process: see place_in_world.
  static auto& world() { return Messages::world(); }
  static process_place place(int ranks) {
    return place_in_world(world(), ranks, Messages::launcher);
  }

  [[gnu::cold]] process_calls(process_place const& here, message_tags const& tags,
                              patience const& limits)
      : world_(world()), place_(here), tags_(tags), limits_{limits.spin, no_deadline},
        deadline_(limits.deadline) {}
  process_calls(process_calls const&) = delete;
  process_calls& operator=(process_calls const&) = delete;

  process_place const& here() const { return place_; }
  message_tags const& tags() const { return tags_; }
  /// Limits of a wait between ranks of this process: there is no deadline.
  patience const& limits() const { return limits_; }
  /// needs: the lock, for most functions
  Messages& messages() { return messages_; }
  /// The lock of messages, which threads of all ranks of this process take.
  std::mutex& calls() { return messages_.calls(); }

  // ---- construction and end ----

  /// In all processes, before any message.
  [[gnu::cold]] void begin() {
    world_.watch().see_ranks(tags_.ranks);
    constructs_.emplace(world_.watch(), process_activity{"constructing a trainer"});
    messages_.begin(tags_.count(), tags_.ranks, waiting());
    world_.watch().join(living_);
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
    ring_.open(messages_, world_.process(), world_.processes(), tags_.of_calls());
  }
  /// Waits for the other processes to do the same, unless the trainer is broken. Returns whether
  /// nothing of the trainer is under way; then requests must be freed, and end() be called.
  [[gnu::cold]] bool part() {
    world_.watch().quit(living_);
    return messages_.part(calls_begun_);
  }
  /// needs: the lock
  [[gnu::cold]] void end() {
    ring_.close(messages_);
    messages_.end();
  }

  // ---- calls ----

  /// Compares calls of all processes: see call_ring.
  ///
  /// throws: rank_error if another process has failed; end_call() also if it makes another call
  void begin_call(process_call const& c) {
    std::lock_guard const lock(calls());  // where steps overlap, ranks read the ring meanwhile
    ++calls_begun_;
    if (!ring_.is_open()) return;
    ring_.begin(messages_, c);
    is_running_ = true;
  }
  void end_call() {
    if (!ring_.is_open()) return;
    wait_whole(ring_.heard);
    wait_whole(ring_.told);  // sockets send within calls only, and the next call may be far away
    look();
    if (has_failed()) throw rank_error(announced());
    is_running_ = false;
  }

  // ---- between runs ----

  int process() const { return world_.process(); }
  int processes() const { return world_.processes(); }
  /// The process of a rank, of the first replica.
  int process_of(int rank) const { return process_of(rank, 0); }
  /// The process of a rank and a replica: the inverse of place().
  int process_of(int rank, int replica) const {
    int const each = world_.processes() / place_.replicas;
    return replica * each + int(((rank + 1L) * each - 1) / tags_.ranks);
  }
  /// Sends bytes at `data` from a process to all others.
  ///
  /// throws: rank_error if another process has failed
  void broadcast(int from, char* data, long bytes) {
    if (world_.processes() == 1) return;
    auto const passes = during({"passing values between processes"});
    messages_.broadcast(from, data, bytes, waiting());
  }
  /// The least of a number in all processes.
  ///
  /// throws: as broadcast
  long least(long here) {
    auto const agrees = during({"agreeing with the other processes"});
    return messages_.least(here, waiting());
  }

  // ---- failures ----

  bool has_failed() const { return world_.has_failed(); }
  /// Tells the other processes of a failure here, whose exception is on its way.
  void announce(std::string_view text) {
    is_failure_told_ = true;
    world_.announce(text);
  }
  /// The text of a failure of any process, for an exception; empty if there is none.
  std::string announced() {
    if (has_failed()) is_failure_told_ = true;
    return world_.watch().failure();
  }
  /// Tells processes that miss another process what this process does, until the end of the scope.
  process_watch::doing during(process_activity what) { return world_.during(what); }
  /// throws: rank_error if a process has failed; the first error of this trainer says why, later
  ///         ones that it is broken
  void require_sound() {
    if (!has_failed()) return;
    bool const is_known = is_failure_told_.exchange(true);
    throw_error<rank_error>(
        {is_known ? "this trainer is broken, as a run over several processes has failed: " : "",
         std::string_view(world_.watch().failure())});
  }

  // ---- waits: they spin as `limits` say, then yield, then sleep ----

  /// Polls `is_so` until it is. Returns earlier if the run or another process has failed, or at the
  /// deadline: see running_time.
  template <class Condition>
  waited until(Condition const& is_so, failure_flag const& failed,
               std::chrono::milliseconds deadline = {}) {
    constexpr std::chrono::milliseconds before_sleep(1);
    running_time waiting;
    for (long polls = 1;; ++polls) {
      if (is_so()) return waited::done;
      if (polls % 16 == 0) look();
      if (failed.load(std::memory_order_acquire) || has_failed()) return waited::failed;
      if (polls % 16 != 0) continue;
      waiting.look();
      if (waiting.is_beyond(deadline)) return waited::too_long;
      if (waiting.total() > before_sleep)
        sleep_for(50'000);
      else if (waiting.total() > limits_.spin)
        sched_yield();
    }
  }
  /// Polls until a request is complete: see until().
  waited complete(request& r, failure_flag const& failed, std::chrono::milliseconds deadline = {}) {
    return until(
        [&] {
          std::lock_guard const lock(calls());
          return !has_failed() && messages_.are_complete(&r, 1);
        },
        failed, deadline);
  }

 private:
  /// The program ends, perhaps in the middle of a run, which then never ends.
  [[gnu::cold]] void leave() {
    if (!has_failed()) messages_.tell_end(calls_begun_ - (is_running_ ? 1 : 0));
  }
  /// Fails a run in which another process does not take part, or makes another call.
  void look() {
    {
      std::lock_guard const lock(calls());
      if (has_failed()) return;
      messages_.hear(calls_begun_);
      if (!ring_.differs(messages_)) return;
    }
    world_.watch().fail(ring_.text());
  }
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
    process_calls& of;
    void operator()(request& r) const { of.wait_whole(r); }
    std::chrono::milliseconds deadline() const { return of.deadline_; }
  };
  waiting_for_all waiting() { return {*this}; }

  std::remove_reference_t<decltype(Messages::world())>& world_;
  std::optional<process_watch::doing> constructs_;  // until all processes agree
  process_place place_;
  message_tags tags_;
  patience limits_;
  std::chrono::milliseconds deadline_;        // of calls between runs
  std::atomic<long> calls_begun_{0};          // of which replicas make different numbers of runs
  std::atomic<bool> is_running_{false};       // a call
  std::atomic<bool> is_failure_told_{false};  // by an exception, to the caller
  call_ring<Messages> ring_;
  living_trainer living_{[](void* self) { static_cast<process_calls*>(self)->leave(); }, this};
  Messages messages_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
