// SPDX-License-Identifier: BSL-1.0
//
// The part of a watch over processes that does not depend on how the processes talk: the identity
// of a process, what the process is doing, the first failure that it knows of, and the watching
// loop.
#pragma once

#include <atomic>
#include <chrono>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pipe/base/error.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/transport/running_time.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The operating system that a process runs on, and the number of the process there. Processes of
/// one machine, and of one space of numbers, can ask the system for each other's deaths.
struct process_identity {
  std::uint64_t machine = 0;  ///< equal on one machine since its last start
  std::uint64_t numbers = 0;  ///< the space of process numbers: a container has its own
  std::int32_t number = 0, unused = 0;

  [[gnu::cold]] static process_identity own() {
    process_identity me;
    char text[64]{};
    file_descriptor const boot("/proc/sys/kernel/random/boot_id", O_RDONLY);
    boot.read(0, std::as_writable_bytes(std::span(text, sizeof(text) - 1)));
    if (text[0] == 0) gethostname(text, sizeof(text) - 1);
    fnv_hash machine;
    for (char const c : text) machine.add(static_cast<unsigned char>(c));
    me.machine = machine.value;
    struct stat space{};
    if (stat("/proc/self/ns/pid", &space) == 0) me.numbers = space.st_ino;
    me.number = getpid();
    return me;
  }
  /// Whether the system can tell this process of the death of the other process.
  bool sees(process_identity const& other) const {
    return machine == other.machine && numbers == other.numbers;
  }
  /// Whether a process of the job can have this identity, as it says. Process `mine` may have to
  /// end that process: so where `mine` sees it, it must be another process, and one of the same
  /// user.
  [[gnu::cold]] bool is_possible(process_identity const& mine, bool is_own) const {
    if (number < 1 || unused != 0) return false;
    if (!sees(mine)) return !is_own;
    if (is_own) return number == mine.number;
    char folder[32];
    std::snprintf(folder, sizeof(folder), "/proc/%d", int(number));
    struct stat other{};
    if (number == mine.number) return false;
    // The loss of a process that has ended meanwhile is found soon. A process of root (as processes
    // with privileges are shown, too) can only be ended by a process of root.
    return stat(folder, &other) != 0 || other.st_uid == geteuid() || other.st_uid == 0;
  }
  /// A descriptor that can be read once the process has died; -1 if the process has died already,
  /// or the system has no such descriptors.
  int handle() const {
#if defined(SYS_pidfd_open)
    return int(syscall(SYS_pidfd_open, number, 0));
#else
    return errno = ENOSYS, -1;
#endif
  }
};

/// What the main thread of a process is doing, in words: "in a run", and details by a function that
/// is called when the words are needed.
struct process_activity {
  char const* words = "outside of the trainers' calls";
  std::string (*more)(void const* of) = nullptr;
  void const* of = nullptr;
};

/// A trainer that exists, and the function that tells other processes that the program ends before
/// the trainer does. It is in a list of the watch, which it must leave before it ends.
struct living_trainer {
  void (*leave)(void* self) = nullptr;
  void* self = nullptr;
  living_trainer* next = nullptr;
};

/// The state of a process, the first failure, if any, and the loop of the thread that watches other
/// processes. Watches derive from this class; how they hear of other processes, and tell them, is
/// theirs.
///
/// law: the first failure stays
class process_watch {
 public:
  using clock = std::chrono::steady_clock;

  /// The time without a word from a watched process after which it is lost; 0: without limit. Only
  /// time in which this process runs counts.
  std::atomic<long> patience_ms{5000};

  process_watch() = default;
  process_watch(process_watch const&) = delete;
  process_watch& operator=(process_watch const&) = delete;

  bool is_ending() const { return is_ending_; }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  /// Why; empty if no process has failed.
  [[gnu::cold]] std::string failure() const {
    std::lock_guard const lock(words_);
    return text_;
  }
  /// A failure that each process finds by itself, such as plans that differ: nothing is told to
  /// other processes.
  [[gnu::cold]] void know(char const* text) { know(false, text); }

  /// A plan that differs from this process's: each process finds it by itself.
  ///
  /// throws: error
  [[noreturn, gnu::cold]] void refuse_plan(int of_process) {
    std::string const text = sentence({"process ", of_process, " has another plan than process ",
                                       process_, ": start the same program in all processes"})
                                 .begin();
    know(text.c_str());
    throw error(text);
  }

  /// "process 2 (ranks 4 to 5)", or "(rank 1 of replica 2)"; without ranks before there is a
  /// trainer, and if trainers differ.
  [[gnu::cold]] std::string name_of(int process) const {
    int const ranks = ranks_.load();
    if (ranks < 1) return sentence({"process ", process}).begin();
    process_place const place = process_place::of(process, processes_, ranks);
    int const first = place.first_rank, last = first + place.ranks - 1;
    std::string name =
        first == last ? sentence({"process ", process, " (rank ", first}).begin()
                      : sentence({"process ", process, " (ranks ", first, " to ", last}).begin();
    if (place.replicas > 1) name += sentence({" of replica ", place.replica}).begin();
    return name + ")";
  }
  /// What the main thread is doing.
  [[gnu::cold]] std::string activity() const {
    std::lock_guard const lock(words_);
    std::string text = activity_.words;
    if (activity_.more != nullptr) text += ": " + activity_.more(activity_.of);
    return text;
  }
  /// A trainer has `ranks` ranks, for name_of().
  void see_ranks(int ranks) {
    int before = 0;
    if (!ranks_.compare_exchange_strong(before, ranks) && before != ranks) ranks_ = -1;
  }

  void join(living_trainer& t) {
    std::lock_guard const lock(living_lock_);
    t.next = std::exchange(living_, &t);
  }
  void quit(living_trainer& t) {
    std::lock_guard const lock(living_lock_);
    living_trainer** at = &living_;
    while (*at != nullptr && *at != &t) at = &(*at)->next;
    if (*at != nullptr) *at = t.next;
  }
  /// The program ends, and so do all its trainers.
  [[gnu::cold]] void leave_all() {
    std::lock_guard const lock(living_lock_);
    for (; living_ != nullptr; living_ = living_->next) living_->leave(living_->self);
  }

  /// Sets the activity of the main thread; the end of the scope restores the activity before.
  class doing {
   public:
    doing(process_watch& of, process_activity what) : of_(of), before_(of.change(what)) {}
    doing(doing const&) = delete;
    doing& operator=(doing const&) = delete;
    ~doing() { of_.change(before_); }

   private:
    process_watch& of_;
    process_activity before_;
  };

 protected:
  /// grace: the time from a failure to the end of all, in which the program may write its files.
  static constexpr std::chrono::milliseconds grace{2000};

  ~process_watch() = default;

  /// Notes a failure, unless there was an earlier one.
  ///
  /// law: the text stays, and ends every wait of this process that looks for has_failed(). The
  ///      process then ends by itself or, after a loss, by the watch
  [[gnu::cold]] void know(bool is_loss, char const* text) {
    {
      std::lock_guard const lock(words_);
      if (has_failed()) return;
      text_ = text;
      is_lost_ = is_loss;
      failed_at_ = clock::now();
    }
    has_failed_.store(true, std::memory_order_release);
  }
  bool is_grace_over() const { return clock::now() >= failed_at_ + grace; }
  /// Sleeps until the end of the time of grace, if there was a failure. Returns whether the caller
  /// is the first thread that is to end the process.
  [[gnu::cold]] bool is_first_to_end() {
    if (has_failed()) {
      auto const left = failed_at_ + grace - clock::now();
      if (left.count() > 0) sleep_for(long(std::chrono::nanoseconds(left).count()));
    }
    return !is_ending_.exchange(true);
  }
  /// The loop of a watch's thread. It says every `period` that this process lives, and misses other
  /// processes that do not say so.
  ///
  /// beat:   says that this process lives; returns whether the word could be said
  /// listen: given a time, sleeps at most for it until a word comes, and hears what has come;
  ///         returns whether there is something left to watch
  /// judge:  given the time that has passed, loses watched processes that are silent
  /// law:    time in which this process was stopped is no silence of others: see running_time
  template <class Beat, class Listen, class Judge>
  [[gnu::cold]] static void watch_loop(std::chrono::milliseconds period, Beat const& beat,
                                       Listen const& listen, Judge const& judge) {
    sigset_t all;  // the program's handlers are called on its own threads
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    running_time time{period};
    std::chrono::nanoseconds since_beat = period;
    for (;;) {
      if (since_beat >= period && beat()) since_beat = {};
      if (!listen(std::chrono::ceil<std::chrono::milliseconds>(period - since_beat))) return;
      std::chrono::nanoseconds const passed = time.look();
      since_beat += passed;
      judge(passed);
    }
  }
  /// Adds to the silence of a watched process. Returns whether it is lost by now.
  bool is_beyond_patience(std::chrono::nanoseconds& silent, std::chrono::nanoseconds passed) const {
    silent += passed;
    long const most = patience_ms;
    return most > 0 && silent > std::chrono::milliseconds(most);
  }
  /// "process 2 was lost: `why`, while process 1 was in a run"
  [[gnu::cold]] std::string words_of_loss(int process, std::string_view why) const {
    std::string text = name_of(process) + " was lost: ";
    text += why;
    return text + ", while " + name_of(process_) + " was " + activity();
  }

  int process_ = 0, processes_ = 1;
  std::atomic<bool> is_lost_{false};     // after has_failed(): a process was lost
  std::atomic<bool> is_leaving_{false};  // this process ends
  thread thread_;

 private:
  process_activity change(process_activity to) {
    std::lock_guard const lock(words_);
    return std::exchange(activity_, to);
  }

  std::mutex living_lock_;
  living_trainer* living_ = nullptr;
  std::atomic<int> ranks_{0};
  std::atomic<bool> has_failed_{false}, is_ending_{false};
  mutable std::mutex words_;  // guards what follows, and is_lost_
  std::string text_;
  process_activity activity_;
  clock::time_point failed_at_;
};

}  // namespace pp::detail
