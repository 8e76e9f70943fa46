// SPDX-License-Identifier: BSL-1.0
//
// Watch of the processes over each other by connections to process 0, which watches all others and
// is watched by all. A thread of each process says twice a second that the process lives, whatever
// the other threads do; the system ends the connections of a process that dies. The first failure
// is told to all; after the loss of a process there is a time of grace, and then all end.
#pragma once

#include <atomic>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/print_report.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/process/process_watch.hpp>
#include <pipe/transport/tcp/tcp_frame.hpp>
#include <pipe/transport/tcp/tcp_host.hpp>

namespace pp::detail {

/// The watch of one process. Alone it does nothing.
///
/// law: a loss is reported once on each machine: by process 0; the loss of process 0 by the process
///      with the least number
/// law: a process that is stopped, and so cannot end itself, is killed if it is on the machine of
///      the process that misses it
class tcp_watch : public process_watch {
 public:
  tcp_watch() : wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~tcp_watch() {
    if (processes_ == 1) return;
    ends_ = true;
    wake();
    thread_.join();
  }

  /// Starts to watch. host: of process 0, which sends newcomers away from now on.
  [[gnu::cold]] void begin(int process, heap_array<process_identity> all,
                           heap_array<tcp_socket> sockets, std::unique_ptr<tcp_host> host) {
    process_ = process;
    processes_ = int(all.size());
    if (processes_ == 1) return;
    all_ = std::move(all);
    host_ = std::move(host);
    peers_ = heap_array<peer>(processes_);
    for (int p = 0; p < processes_; ++p) {
      if (!sockets[p].is_open()) continue;
      peers_[p].socket = std::move(sockets[p]);
      peers_[p].socket.expect_prompt_reader();
      if (all_[process_].sees(all_[p])) peers_[p].handle = tcp_socket(all_[p].handle());
    }
    thread_ = thread([](void* self, int) { static_cast<tcp_watch*>(self)->run(); }, this, 0);
  }

  /// Tells all processes of a failure in this process, unless they know of a failure. The text
  /// names the process.
  [[gnu::cold]] void fail(std::string_view text) {
    std::string const line(text.substr(0, word::longest));
    bool const is_told = !has_failed() && processes_ > 1;
    if (is_told) say(word::failed, 0, line);
    know(line.c_str());  // before the other processes end because of the failure: no loss
    for (int i = 0; is_told && i < 100 && !is_all_said(); ++i) sleep_for(1'000'000);
  }
  /// This process ends with a status that is not 0, which is reported to all. Returns when all know
  /// the status, or after the time of grace.
  ///
  /// needs: to be called by the thread that ends the process
  [[gnu::cold]] void leave(int status) {
    if (processes_ == 1) return;
    is_leaving_ = true;
    say(word::leaves, status);
    auto const end = clock::now() + grace;
    while (!has_failed() && clock::now() < end && !(process_ == 0 && is_all_said()))
      sleep_for(1'000'000);
  }
  /// This process has come to its end, after this number of operations. Waits until all other
  /// processes have, too. Returns whether no process has failed.
  [[gnu::cold]] bool part(long operations) {
    if (processes_ == 1) return true;
    if (has_failed()) return false;
    say(word::parts, operations);
    while (heard_ < processes_ - 1 || !is_all_said()) {
      if (has_failed()) return false;
      sleep_for(200'000);
    }
    return true;
  }
  /// A process that has ended, and so makes no operation of this number; -1: no process has.
  ///
  /// law: operations are numbered from 0 on in all processes alike
  int ended_before(long operation) const {
    return operation >= fewest_.load(std::memory_order_acquire) ? ended_.load() : -1;
  }
  /// Ends this process after the time of grace; the other processes see its end.
  [[noreturn, gnu::cold]] void end_all(int status) {
    if (!is_first_to_end()) sleep_for(10'000'000'000);  // the first ends the process
    _exit(status);
  }

 private:
  /// A message: its head, and a text of `length` bytes.
  struct word {
    static constexpr int longest = 1000;
    /// lives, leaves: of the sender. parts, failed: of any process, by process 0 to the others.
    /// lost: by process 0; its receiver ends.
    enum kinds : std::int32_t { lives = 1, parts, leaves, failed, lost } what = lives;
    std::int32_t process = 0;
    std::int64_t number = 0;  // parts: operations; leaves: the status
    std::uint32_t length = 0, unused = 0;
    char text[longest]{};

    static constexpr long head = 24;
    long size() const { return head + long(length); }
  };
  static_assert(offsetof(word, text) == word::head);

  /// A process that this process watches.
  struct peer {
    tcp_socket socket, handle;  // handle: a pidfd
    std::string out;            // bytes that the system has not taken yet
    word in;
    long have = 0;
    std::chrono::nanoseconds silent{};
    bool has_parted = false;
  };
  static constexpr std::chrono::milliseconds period{500};  // between two words

  // ---- of any thread ----

  /// Leaves a word for the thread, which sends it to all processes that this process is connected
  /// with.
  [[gnu::cold]] void say(word::kinds what, long number, std::string_view text = {}) {
    word w;
    w.what = what;
    w.process = process_;
    w.number = number;
    w.length = std::uint32_t(text.size());
    text.copy(w.text, word::longest);
    {
      std::lock_guard const lock(said_lock_);
      said_.append(reinterpret_cast<char const*>(&w), std::size_t(w.size()));
      all_said_ = false;
    }
    wake();
  }
  void wake() const {
    std::uint64_t const one = 1;
    uninterrupted([&] { return write(wake_.descriptor(), &one, sizeof(one)); });
  }
  bool is_all_said() const {
    std::lock_guard const lock(said_lock_);
    return all_said_;
  }

  // ---- of the thread ----

  /// Until the object ends. After a failure the loop goes on: other processes may still be lost.
  [[gnu::cold]] void run() {
    watch_loop(
        period, [&] { return beat(); },
        [&](std::chrono::milliseconds time) { return listen(time); },
        [&](std::chrono::nanoseconds passed) { judge(passed); });
  }
  bool beat() {
    word w;
    w.process = process_;
    for (peer& p : peers_)
      if (p.out.empty()) send(p, w);
    return true;
  }
  [[gnu::cold]] bool listen(std::chrono::milliseconds time) {
    take_said();
    wait(time);
    for (peer& p : peers_) hear(p);
    if (!is_lost_ || is_leaving_) return !ends_;
    while (!ends_ && !is_grace_over()) sleep_for(10'000'000);
    if (!ends_) end_all(1);  // otherwise the program has no more use for the other processes
    return false;
  }
  [[gnu::cold]] void judge(std::chrono::nanoseconds passed) {
    for (peer& p : peers_)
      if (p.socket.is_open() && !p.has_parted && is_beyond_patience(p.silent, passed))
        lose(p, {"it has not answered for ", patience_ms / 1000, " s"}, true);
  }
  /// Sleeps until a peer has said something or takes more bytes, another thread has left a word, or
  /// a newcomer has come; at most for this time.
  void wait(std::chrono::milliseconds time) {
    heap_array<pollfd> of(processes_ + 2);
    for (int p = 0; p < processes_; ++p)
      of[p] = {peers_[p].socket.descriptor(),
               short(peers_[p].out.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    of[processes_] = {wake_.descriptor(), POLLIN, 0};
    of[processes_ + 1] = {host_ != nullptr ? host_->descriptor() : -1, POLLIN, 0};
    poll(of.begin(), nfds_t(of.size()), int(time.count()));
    std::uint64_t count = 0;
    if (of[processes_].revents != 0)
      uninterrupted([&] { return read(wake_.descriptor(), &count, sizeof(count)); });
    if (of[processes_ + 1].revents != 0) host_->look(0);
    for (peer& p : peers_) flush(p);
  }
  /// Bytes that the system does not take now are sent before any later word.
  void send(peer& p, word const& w) {
    if (!p.socket.is_open()) return;
    p.out.append(reinterpret_cast<char const*>(&w), std::size_t(w.size()));
    flush(p);
  }
  /// Gives the system as much as it takes.
  void flush(peer& p) {
    long done = 0;
    if (p.out.empty()) return;
    // A connection that has ended is found by the next read.
    if (p.socket.is_open() && p.socket.write(p.out.data(), long(p.out.size()), done) == moved::some)
      p.out.erase(0, std::size_t(done));
    if (!p.socket.is_open()) p.out.clear();
  }
  /// Sends the words that other threads have left to all processes that this process is connected
  /// with.
  void take_said() {
    std::lock_guard const lock(said_lock_);
    bool is_sent = true;
    for (peer& p : peers_) {
      if (!p.socket.is_open()) continue;
      p.out += said_;
      flush(p);
      is_sent = is_sent && p.out.empty();
    }
    said_.clear();
    all_said_ = is_sent;
  }
  /// Every other process has come to its end, and no connection is needed any more.
  bool all_have_parted() const { return heard_ == processes_ - 1; }

  /// Reads all that has come: a word's head first, and then its text, if the length fits.
  void hear(peer& p) {
    for (int most = 256; most > 0 && p.socket.is_open(); --most) {  // other peers are heard, too
      bool const has_head = p.have >= word::head;
      bool const is_wrong = has_head && p.in.length > word::longest;
      if (!is_wrong) {
        long const next = has_head ? p.in.size() : word::head;
        if (p.have < next) {
          moved const m =
              p.socket.read(reinterpret_cast<char*>(&p.in) + p.have, next - p.have, p.have);
          if (m == moved::none_now) return;
          if (m != moved::some) return see_end(p, m == moved::closed || errno == ECONNRESET);
        }
        if (!has_head || p.have < next) continue;
      }
      p.have = 0;
      p.silent = {};
      if (is_wrong || !understand(p)) lose(p, {"it has sent what no process of this job sends"});
    }
  }
  /// Acts on a word. Returns false if no process of this job can have said the word: a word of a
  /// third process, which only process 0 passes on, a word that comes twice, a number out of range.
  ///
  /// needs: a whole word
  bool understand(peer& p) {
    word& w = p.in;
    bool const has_text = w.what == word::failed || w.what == word::lost;
    if (w.process < 0 || w.process >= processes_ || w.unused != 0 || (w.length > 0) != has_text)
      return false;
    // Process 0 passes on what others say, and no other process does.
    bool const is_own = &peers_[w.process] == &p;
    switch (w.what) {
      case word::lives: return is_own;
      case word::parts:
        if ((process_ == 0 ? !is_own : w.process == process_) || w.number < 0 ||
            std::exchange(peers_[w.process].has_parted, true))
          return false;
        relay(w, p);  // first: once it has noted the last end, process 0 may end itself
        note_end(w.process, w.number);
        return true;
      case word::leaves:
        if (!is_own || w.number < INT_MIN || w.number > INT_MAX) return false;
        lose(p, {"it has ended with exit status ", w.number});
        return true;
      case word::failed:
      case word::lost: {
        bool const ends = w.what == word::lost;
        if (ends && process_ == 0) return false;
        if (!has_failed()) relay(w, p);
        know(ends, printable(w.text, w.length).c_str());
        if (ends) is_lost_ = true;
        return true;
      }
    }
    return false;
  }
  /// Process 0 passes on a word that all processes need, and has said all only when they have it.
  void relay(word const& w, peer const& from) {
    if (process_ != 0) return;
    bool is_sent = true;
    for (peer& p : peers_) {
      if (&p != &from) send(p, w);
      is_sent = is_sent && p.out.empty();
    }
    if (is_sent) return;
    std::lock_guard const lock(said_lock_);
    all_said_ = false;  // until take_said() finds it sent
  }
  /// A process has come to its end: an operation that the process has not made never completes.
  void note_end(int process, long operations) {
    ++heard_;
    if (operations >= fewest_) return;
    ended_ = process;
    fewest_.store(operations, std::memory_order_release);
  }

  /// The connection has ended, which is no failure once all have parted.
  void see_end(peer& p, bool is_death) {
    if ((all_have_parted() && !has_failed()) || is_leaving_) {
      p.socket.close();
      p.out.clear();
    } else if (is_death) {
      lose(p, {"killed"});
    } else {
      lose(p, {"its connection has failed: ", std::strerror(errno)});
    }
  }
  /// Tells that a process is lost, and what this process was doing then. All end after the time of
  /// grace. A loss that follows from a known failure is not told.
  [[gnu::cold]] void lose(peer& p, std::initializer_list<piece> why, bool is_stopped = false) {
    int const number = int(&p - peers_.begin());
    bool const is_first = !has_failed();
    std::string const text = is_first ? words_of_loss(number, sentence(why).begin()) : failure();
    p.socket.close();
    p.out.clear();
    if (is_first && reports_on(number)) print_report(text);
    if (is_stopped && reports_on(number)) kill_stopped(p);
    if (process_ == 0) {
      word w;
      w.what = word::lost;
      w.process = number;
      w.length = std::uint32_t(text.size() < word::longest ? text.size() : word::longest);
      text.copy(w.text, word::longest);
      relay(w, p);
    }
    know(true, text.c_str());
    is_lost_ = true;
  }
  /// A process that is stopped cannot end itself.
  [[gnu::cold]] static void kill_stopped(peer const& p) {
#if defined(SYS_pidfd_send_signal)
    if (p.handle.is_open())
      syscall(SYS_pidfd_send_signal, p.handle.descriptor(), SIGKILL, nullptr, 0);
#endif
  }
  /// Whether this process reports the loss of that process on this machine.
  bool reports_on(int lost) const {
    for (int p = 0; p < process_; ++p)
      if (p != lost && all_[p].machine == all_[process_].machine) return false;
    return true;
  }

  tcp_socket wake_;
  heap_array<process_identity> all_;
  std::unique_ptr<tcp_host> host_;
  heap_array<peer> peers_;  // by process; a process that is not watched has no open socket
  std::atomic<bool> ends_{false};
  std::atomic<int> heard_{0}, ended_{-1};
  std::atomic<long> fewest_{LONG_MAX};
  mutable std::mutex said_lock_;  // guards what follows
  std::string said_;
  bool all_said_ = true;
};

}  // namespace pp::detail
