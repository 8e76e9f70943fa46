// SPDX-License-Identifier: BSL-1.0
//
// Watch of the processes over each other, because MPI reports no peer that was killed, was stopped
// or has failed. Process p watches process p + 1, the last process watches the first, and process p
// tells p - 1 that it lives. A separate thread does this in each process, whatever the other
// threads do. The first failure is told to all, and fails every trainer. After the loss of a
// process there is a time of grace, and then MPI_Abort.
//
// source: MPI 3.1, chapter 8.7: MPI_Finalize begins with the deletion of MPI_COMM_SELF's attributes
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/print_report.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/process/process_watch.hpp>

namespace pp::detail {

/// The watch of one process; a process that is alone watches nothing.
///
/// States: the watch begins on MPI_COMM_WORLD, moves to a communicator of its own, and ends with
/// part(), or with a failure, whose text then stays. A word from the next process says that the
/// process runs, not that its ranks make progress, for which a run has its deadline.
///
/// law: one process reports a loss, and no process reports a loss that follows from another
/// law: after a failure is known no call to MPI is made here but MPI_Abort: memory that was to be
///      received to may be gone
class mpi_watch : public process_watch {
 public:
  /// calls: the lock under which MPI is called.
  explicit mpi_watch(std::mutex& calls) : calls_(calls) {}

  /// Starts to watch. Until move() the processes talk on MPI_COMM_WORLD. `all_are_here`: the next
  /// process comes soon, or is lost; otherwise it is not missed before its first word.
  [[gnu::cold]] void begin(int process, int processes, bool all_are_here) {
    process_ = process;
    processes_ = processes;
    is_missed_ = all_are_here;
    if (processes_ == 1) return;
    beat_.of = process_identity::own();
    failures_ = heap_array<MPI_Request>(processes_ - 1);
    for (MPI_Request& r : failures_) r = MPI_REQUEST_NULL;
    thread_ = thread([](void* self, int) { static_cast<mpi_watch*>(self)->run(); }, this, 0);
  }
  /// From now on the processes talk on a communicator of their own.
  [[gnu::cold]] void move(MPI_Comm own) {
    for (bool is_said = processes_ == 1; !is_said && !has_failed(); sleep_for(50'000)) {
      std::lock_guard const lock(calls_);
      is_said = say(message::moves);
      if (is_said) sends_on_ = own_ = own;
    }
  }
  /// By process, who they are.
  [[gnu::cold]] void meet(heap_array<process_identity> all) {
    std::lock_guard const lock(calls_);
    all_ = std::move(all);
  }
  /// This process has come to its end. Waits until the watched process has come to its end, too;
  /// the thread has ended then.
  ///
  /// needs: move(). returns: whether no process has failed
  [[gnu::cold]] bool part() {
    if (processes_ == 1) return true;
    for (bool is_said = false; !is_over_; sleep_for(50'000)) {
      if (has_failed()) return false;
      std::lock_guard const lock(calls_);
      if (!is_said) is_said = say(message::parts);
      is_over_ = is_said && has_parted_ && is_sent();
    }
    thread_.join();
    return true;
  }

  /// Tells all processes of a failure in this one, unless they know of one. The text names the
  /// process.
  [[gnu::cold]] void fail(std::string_view text) { tell(message::failed, text); }
  /// This process ends with a status that is not 0; the previous process reports the status to all.
  /// Returns when all know it, or after the time of grace.
  [[gnu::cold]] void leave(int status) {
    if (processes_ == 1) return;
    auto const end = clock::now() + grace;
    for (bool is_said = false; !has_failed() && clock::now() < end; sleep_for(1'000'000)) {
      std::lock_guard const lock(calls_);
      is_leaving_ = true;
      beat_.status = status;
      if (!is_said && !has_failed()) is_said = say(message::leaves);
    }
  }
  /// Ends all processes after the time of grace, in which the program may write its files.
  [[noreturn, gnu::cold]] void end_all(int status) {
    if (is_first_to_end()) MPI_Abort(MPI_COMM_WORLD, status);
    sleep_for(10'000'000'000);  // the thread that was first ends the process
    _exit(status);
  }

 private:
  /// Short enough that MPI sends it without its receiver's help.
  struct message {
    /// failed, lost: from any process. All others: from the next process.
    enum kind : int { lives, moves, parts, leaves, failed, lost } what = lives;
    int status = 0;  // leaves
    process_identity of;
    char text[1000]{};
  };
  static constexpr int tag = 32767;  // the largest that every MPI has
  // look: between two looks at what has come. period: between two words. settling: mpirun ends all
  // others within this time, if it does.
  static constexpr std::chrono::milliseconds look{20}, period{1000}, settling{500};

  // The ring.
  int next() const { return (process_ + 1) % processes_; }
  int previous() const { return (process_ + processes_ - 1) % processes_; }

  // ---- the thread ----

  /// Until all have parted, or a failure is known. MPI's lock is held only for calls that do not
  /// wait, and never while the thread sleeps.
  [[gnu::cold]] void run() {
    watch_loop(
        period, [&] { return beat(); },
        [&](std::chrono::milliseconds time) { return listen(time); },
        [&](std::chrono::nanoseconds passed) { judge(passed); });
  }
  bool beat() {
    std::lock_guard const lock(calls_);
    return !is_over_ && !has_failed() && say(message::lives);
  }
  /// Sleeps until the next look: MPI wakes no thread for a message.
  [[gnu::cold]] bool listen(std::chrono::milliseconds) {
    bool const died = sees_death();
    {
      std::lock_guard const lock(calls_);
      if (is_over_) return stop(), false;
      // More than once, as one test may not see all that a dead process had sent.
      for (int i = 0; i < (died ? 4 : 1) && !has_failed(); ++i)
        if (hear()) silent_ = {};
    }
    if (!has_failed()) return true;
    if (is_lost_) end_all(1);
    return false;
  }
  [[gnu::cold]] void judge(std::chrono::nanoseconds passed) {
    if (is_leaving_ || has_parted_) return;
    bool const is_silent = is_missed_ && is_beyond_patience(silent_, passed);
    if (left_with_ != 0)
      lose({"it has ended with exit status ", left_with_});
    else if (is_dead_ && (since_death_ += look) > (is_only_death() ? look : settling))
      lose({"killed"});
    else if (is_silent)
      lose({"it has not answered for ", patience_ms / 1000, " s"});
  }
  /// Tells that the next process is lost, and what this process was doing then. All processes are
  /// ended after the time of grace.
  [[gnu::cold]] void lose(std::initializer_list<piece> why) {
    tell(message::lost, words_of_loss(next(), sentence(why).begin()));
  }
  /// Sleeps until the next look, or the death of the watched process. Returns whether the watched
  /// process has died.
  bool sees_death() {
    if (has_parted_ && handle_ >= 0) close(std::exchange(handle_, -1));
    pollfd of{handle_, POLLIN, 0};  // a negative descriptor is ignored
    if (poll(&of, 1, int(look.count())) > 0) {
      is_dead_ = true;
      close(std::exchange(handle_, -1));
    }
    return is_dead_;
  }
  /// Whether all other processes of this machine live. Otherwise mpirun is ending them after an
  /// earlier death, which another process reports.
  [[gnu::cold]] bool is_only_death() {
    for (int p = 0; p < int(all_.size()); ++p) {
      if (p == process_ || p == next() || !beat_.of.sees(all_[p])) continue;
      pollfd of{all_[p].handle(), POLLIN, 0};
      bool const is_dead = of.fd < 0 || poll(&of, 1, 0) > 0;
      if (of.fd >= 0) close(of.fd);
      if (is_dead) return false;
    }
    return all_.size() > 0;
  }

  // ---- messages; needs: MPI's lock ----

  /// Reads the words that have come. Returns whether there was a word.
  bool hear() {
    bool is_word = false;
    while (!has_failed()) {
      if (receive_ == MPI_REQUEST_NULL) {
        if (listens_on_ == MPI_COMM_NULL) listens_on_ = own_;  // the next process has moved
        if (listens_on_ == MPI_COMM_NULL) break;
        MPI_Irecv(&in_, sizeof(in_), MPI_BYTE, MPI_ANY_SOURCE, tag, listens_on_, &receive_);
      }
      int is_here = 0;
      MPI_Test(&receive_, &is_here, MPI_STATUS_IGNORE);
      if (is_here == 0) break;
      switch (in_.what) {
        case message::lives: see(in_.of); break;
        case message::moves: listens_on_ = MPI_COMM_NULL; break;
        case message::parts: has_parted_ = true; break;
        case message::leaves: left_with_ = in_.status; break;
        case message::failed:
        case message::lost: know(in_.what == message::lost, in_.text); break;
      }
      is_word = true;
    }
    return is_word;
  }
  /// The next process lives. Its death is seen at once if it is on this machine and the system has
  /// handles of processes.
  void see(process_identity const& of) {
    is_missed_ = true;
    if (is_seen_ || !beat_.of.sees(of)) return;
    is_seen_ = true;
    handle_ = of.handle();
    is_dead_ = handle_ < 0 && errno == ESRCH;
  }
  /// Whether MPI has sent the last word, and no longer reads its memory.
  bool is_sent() {
    int is_sent = 0;
    MPI_Test(&sent_, &is_sent, MPI_STATUS_IGNORE);
    return is_sent != 0;
  }
  /// Sends a word to the previous process, unless the last word is still being sent, as to a
  /// process that is stopped. Returns whether the word is sent.
  bool say(message::kind what) {
    if (!is_sent()) return false;
    beat_.what = what;
    MPI_Isend(&beat_, sizeof(beat_), MPI_BYTE, previous(), tag, sends_on_, &sent_);
    return true;
  }
  /// The end of the thread: nothing is received any more.
  void stop() {
    if (receive_ != MPI_REQUEST_NULL) {
      MPI_Cancel(&receive_);
      MPI_Wait(&receive_, MPI_STATUS_IGNORE);
    }
    if (handle_ >= 0) close(handle_);
  }

  /// Tells all other processes, without waiting for a process that does not receive, then this
  /// process. A loss is reported once, here.
  [[gnu::cold]] void tell(message::kind what, std::string_view text) {
    std::lock_guard const lock(calls_);
    if (has_failed()) return;
    failure_.what = what;
    std::size_t const most = sizeof(failure_.text) - 1;
    std::memcpy(failure_.text, text.data(), text.size() < most ? text.size() : most);
    for (int p = 0, i = 0; p < processes_; ++p)
      if (p != process_)
        MPI_Isend(&failure_, sizeof(failure_), MPI_BYTE, p, tag, sends_on_, &failures_[i++]);
    if (what == message::lost) print_report(failure_.text);
    int are_sent = 0;
    for (int i = 0; i < 100 && are_sent == 0; ++i) {
      MPI_Testall(int(failures_.size()), failures_.begin(), &are_sent, MPI_STATUSES_IGNORE);
      if (are_sent == 0) sleep_for(1'000'000);
    }
    know(what == message::lost, failure_.text);
  }

  std::mutex& calls_;
  // Of the thread, or under MPI's lock.
  bool is_missed_ = false, is_seen_ = false, is_dead_ = false, has_parted_ = false,
       is_over_ = false;
  int handle_ = -1, left_with_ = 0;          // of the next process; 0: it is there
  std::chrono::nanoseconds silent_{};        // of the next process
  std::chrono::milliseconds since_death_{};  // of the next process
  MPI_Comm own_ = MPI_COMM_NULL, sends_on_ = MPI_COMM_WORLD, listens_on_ = MPI_COMM_WORLD;
  MPI_Request receive_ = MPI_REQUEST_NULL, sent_ = MPI_REQUEST_NULL;
  heap_array<MPI_Request> failures_;
  message in_, beat_, failure_;
  heap_array<process_identity> all_;
};

}  // namespace pp::detail
