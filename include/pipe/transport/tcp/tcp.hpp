// SPDX-License-Identifier: BSL-1.0
//
// Messages between processes by sockets, as process_transport needs them.
#pragma once

#include <cstdint>
#include <mutex>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/process/process_transport.hpp>
#include <pipe/transport/tcp/tcp_links.hpp>
#include <pipe/transport/tcp/tcp_world.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Messages of one trainer: see mpi_messages.
class tcp_messages {
 public:
  using request = tcp_request;
  static constexpr char const* launcher = "the launcher";
  static tcp_world& world() { return tcp_world::of_process(); }
  std::mutex& calls() { return links_->calls(); }

  /// In all processes, before any other call; without the lock.
  ///
  /// throws: rank_error if a process has failed, or does not come before the deadline
  template <class Wait>
  [[gnu::cold]] void begin(long tags, int, Wait const& wait) {
    world_.set_deadline(wait.deadline());
    links_ = &links();
    std::lock_guard const lock(calls());
    barrier_tag_ = int(tags);
    links_->add(trainer_, tags + 1);
  }
  /// Tells the others that this process has ended the trainer, and after how many runs.
  [[gnu::cold]] void tell_end(long runs) {
    std::lock_guard const lock(calls());
    if (notices_.size() > 0) return;
    notices_ = heap_array<request>(world_.processes());
    for (int p = 0; p < world_.processes(); ++p)
      if (p != world_.process()) start_new(notices_[p], request::ends, p, 0, nullptr, runs);
  }
  /// Calls tell_end(), and waits for the other processes to do the same. Returns whether all have,
  /// and no process has failed.
  [[gnu::cold]] bool part(long runs) {
    if (world_.has_failed()) return false;
    auto const ends = world_.during({"ending a trainer"});
    tell_end(runs);
    for (;; sleep_for(50'000)) {
      std::lock_guard const lock(calls());
      if (world_.has_failed()) return false;
      links_->advance();
      if (are_done(notices_.begin(), world_.processes()) &&
          trainer_.ended == world_.processes() - 1)
        return true;
    }
  }
  /// After part(): nothing of the trainer is under way.
  [[gnu::cold]] void end() { links_->remove(trainer_); }
  /// Fails a run in which another process takes no part. runs: begun here.
  void hear(long runs) {
    links_->advance();
    // Told to all: the process that has ended the trainer waits for the others.
    if (runs > trainer_.fewest_runs)
      world_.watch().fail(sentence({"process ", trainer_.first_to_end,
                                    " has ended its trainer, which this one still runs"})
                              .begin());
  }

  // ---- messages: between two processes the messages of a tag arrive in order ----

  /// Requests that start() starts, any number of times.
  void prepare_send(request& r, int to, int tag, char const* data, long bytes) {
    r = make(request::sends, to, tag, const_cast<char*>(data), bytes);
  }
  /// may_be_less: of a message with fewer bytes, too
  void prepare_receive(request& r, int from, int tag, char* data, long bytes,
                       bool may_be_less = false) {
    r = make(request::receives, from, tag, data, bytes);
    r.may_be_less = may_be_less;
  }
  void start(request& r) { links_->start(r); }
  void free(request&) {}
  /// Requests for one message.
  void send(request& r, int to, int tag, char const* data, long bytes) {
    start_new(r, request::sends, to, tag, const_cast<char*>(data), bytes);
  }
  void receive(request& r, int from, int tag, char* data, long bytes) {
    start_new(r, request::receives, from, tag, data, bytes);
  }
  bool are_complete(request* r, int count) {
    if (are_done(r, count)) return true;
    links_->advance();
    return are_done(r, count);
  }

  /// In each round a process tells another process that it has come, and hears from a third; the
  /// distance to both doubles from round to round.
  ///
  /// source: Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, 1988
  void start_barrier() {
    distance_ = 1;
    start_round();
  }
  bool has_passed_barrier() {
    while (distance_ < world_.processes()) {
      if (!are_complete(barrier_, 2)) return false;
      distance_ *= 2;
      start_round();
    }
    return true;
  }

  // ---- operations of all processes, without the lock: see tcp_world ----

  template <class Wait>
  [[gnu::cold]] void agree(std::uint64_t plan, Wait const& wait) {
    world_.set_deadline(wait.deadline());
    world_.agree(plan);
  }
  template <class Wait>
  void broadcast(int from, char* data, long bytes, Wait const& wait) {
    world_.set_deadline(wait.deadline());
    world_.broadcast(from, data, bytes);
  }
  template <class Wait>
  long least(long here, Wait const& wait) {
    world_.set_deadline(wait.deadline());
    return world_.least(here);
  }

 private:
  /// The connections are made with the first trainer, and stay until the end of the program.
  [[gnu::cold]] static tcp_links& links() {
    static tcp_links& all = *new tcp_links(world());
    return all;
  }
  request make(request::kinds kind, int peer, int tag, char* data, long bytes) const {
    request r;
    r.kind = kind, r.trainer = trainer_.number, r.peer = peer, r.tag = tag;
    r.data = data, r.bytes = bytes;
    return r;
  }
  void start_new(request& r, request::kinds kind, int peer, int tag, char* data, long bytes) {
    r = make(kind, peer, tag, data, bytes);
    links_->start(r);
  }
  static bool are_done(request const* r, int count) {
    for (int i = 0; i < count; ++i)
      if (!r[i].is_done) return false;
    return true;
  }
  void start_round() {
    int const n = world_.processes(), p = world_.process();
    if (distance_ >= n) return;
    receive(barrier_[0], (p + n - distance_) % n, barrier_tag_, nullptr, 0);
    send(barrier_[1], (p + distance_) % n, barrier_tag_, nullptr, 0);
  }

  tcp_world& world_ = world();
  tcp_links* links_ = nullptr;  // from begin() on
  tcp_trainer trainer_;
  heap_array<request> notices_;
  request barrier_[2];
  int barrier_tag_ = 0, distance_ = 1;
};

using tcp = process_transport<tcp_messages>;
static_assert(replica_transport<tcp>);

}  // namespace pp::detail
PIPE_OPTIMIZED_END
