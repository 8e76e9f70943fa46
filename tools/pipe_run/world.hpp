// SPDX-License-Identifier: BSL-1.0
//
// One start of the program: its processes from their beginning to the end of all.
#pragma once

#include <sys/mman.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <pipe/base/heartbeat.hpp>
#include <pipe/transport/process/job_token.hpp>

#include "child.hpp"
#include "descriptor.hpp"
#include "prefixed_lines.hpp"
#include "signals.hpp"

namespace launcher {

using clock = std::chrono::steady_clock;
inline double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

/// A line of the launcher itself, written at once.
inline void say(std::string const& line) { write_all(STDERR_FILENO, "pipe-run: " + line + "\n"); }

/// What is the same for all starts.
struct world_settings {
  std::vector<std::string> program;
  bool is_prefixed = false;
  double grace = 30;  ///< from a request to end to SIGKILL, in seconds
  double hang = 0;    ///< time without a completed call after which processes hang; 0: no limit
};

/// How a start has ended.
struct outcome {
  static constexpr int code_of_hang = 124;
  std::string words;  ///< the first failure; empty: all processes have ended with 0
  int code = 0;       ///< of the process that was first to fail
  int signal = 0;     ///< that the launcher was asked to end by; 0: none

  bool is_good() const { return words.empty(); }
};

/// The counter of a process's calls, for the launcher.
class heartbeat {
 public:
  heartbeat() : file_(memfd_create("pipe-heartbeat", MFD_CLOEXEC)) {
    pp::detail::heartbeat_memory const fresh{};
    if (!file_.is_open() ||
        !write_all(file_.number(), {reinterpret_cast<char const*>(&fresh), sizeof(fresh)}))
      throw_fault("make a heartbeat");
    memory_ = pp::detail::heartbeat_memory::behind(file_.number());
    if (memory_ == nullptr) throw_fault("map a heartbeat");
  }
  heartbeat(heartbeat&& other) noexcept
      : file_(std::move(other.file_)), memory_(std::exchange(other.memory_, nullptr)) {}
  heartbeat& operator=(heartbeat&&) = delete;
  ~heartbeat() {
    if (memory_ != nullptr) munmap(memory_, sizeof(*memory_));
  }
  int number() const { return file_.number(); }
  std::uint64_t beats() const { return memory_->beats.load(std::memory_order_relaxed); }

 private:
  descriptor file_;
  pp::detail::heartbeat_memory* memory_;
};

/// A port of loopback that is free now.
inline int free_port() {
  descriptor const s(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (!s.is_open() || bind(s.number(), address, size) != 0 ||
      getsockname(s.number(), address, &size) != 0)
    throw_fault("find a free port");
  return ntohs(at.sin_port);
}
/// The processes of one start.
///
/// law: when run() returns, all have ended, and what is left of their groups was sent SIGKILL
class world {
 public:
  world(world_settings const& settings, signals& all, int processes, int restart)
      : settings_(settings), signals_(all), processes_(processes), restart_(restart) {}
  world(world const&) = delete;
  world& operator=(world const&) = delete;
  ~world() {
    for (child& c : children_) c.leave();
  }

  /// Starts the program, and returns when all processes have ended.
  ///
  /// throws: start_error, when nothing runs; fault
  outcome run() {
    port_ = free_port();
    token_ =
        pp::detail::job_token::random().digits();  // what is left of an earlier start cannot come
    for (int rank = 0; rank < processes_; ++rank) start(rank);
    while (!have_all_ended()) {
      wait();
      take_signals();
      look();
      if (kill_at_ && clock::now() >= *kill_at_) {
        kill_at_.reset();
        send(SIGKILL);
      }
    }
    for (child& c : children_) c.leave();
    children_.clear();
    for (prefixed_lines& l : lines_) {
      l.copy();
      if (l.is_open()) l.close();
    }
    return outcome_;
  }

 private:
  void start(int rank) {
    std::string const number = std::to_string(rank), all = std::to_string(processes_);
    beats_.emplace_back();
    last_.push_back(0);
    command const what{settings_.program,
                       {{"RANK", number},
                        {"WORLD_SIZE", all},
                        {"LOCAL_RANK", number},
                        {"LOCAL_WORLD_SIZE", all},
                        {"MASTER_ADDR", "127.0.0.1"},
                        {"MASTER_PORT", std::to_string(port_)},
                        {"PIPE_JOB_TOKEN", token_},
                        {"PIPE_RESTART", std::to_string(restart_)},
                        {pp::detail::heartbeat_variable, std::to_string(beats_.back().number())}},
                       // Of launchers that would come first: see process_launch.
                       {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_STEP_ID"},
                       beats_.back().number()};
    if (!settings_.is_prefixed) {
      children_.emplace_back(what, std::array{-1, -1}, signals_.before());
      return;
    }
    channel out = channel::open(), err = channel::open();
    children_.emplace_back(what, std::array{out.writes.number(), err.writes.number()},
                           signals_.before());
    std::string const prefix = "[" + number + "] ";
    lines_.emplace_back(std::move(out.reads), STDOUT_FILENO, prefix);
    lines_.emplace_back(std::move(err.reads), STDERR_FILENO, prefix);
  }
  bool have_all_ended() const {
    for (child const& c : children_)
      if (!c.has_ended()) return false;
    return true;
  }
  void send(int signal) const {
    for (child const& c : children_) c.send(signal);
  }

  /// Until there is something to do; copies output meanwhile.
  void wait() {
    std::vector<pollfd> all{{signals_.number(), POLLIN, 0}};
    std::vector<prefixed_lines*> of{nullptr};
    for (prefixed_lines& l : lines_)
      if (l.is_open()) all.push_back({l.number(), POLLIN, 0}), of.push_back(&l);
    int milliseconds = -1;
    if (kill_at_) {
      double const left = -seconds_since(*kill_at_);
      milliseconds = left > 0 ? int(left * 1000) + 1 : 0;
    } else if (settings_.hang > 0) {
      milliseconds = look_period;
    }
    auto const begin = clock::now();
    poll(all.data(), nfds_t(all.size()), milliseconds);
    count_silence(seconds_since(begin));
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i].revents != 0) of[i]->copy();
  }
  void take_signals() {
    while (int const s = signals_.take()) {
      if (s == SIGCHLD) continue;
      if (s == SIGTSTP) {  // Ctrl-Z: all of the job stops, and goes on with the launcher
        send(SIGSTOP);
        kill(getpid(), SIGSTOP);
        send(SIGCONT);
        continue;
      }
      send(s);
      if (!signals::is_end(s)) continue;
      outcome_.signal = s;
      end_soon();
    }
  }
  /// Sees who has ended; the first that failed ends the others.
  void look() {
    for (int rank = 0; rank < int(children_.size()); ++rank) {
      child& c = children_[std::size_t(rank)];
      if (!c.look() || c.end().is_good() || !outcome_.is_good()) continue;
      outcome_.words = "process " + std::to_string(rank) + " " + c.end().words();
      outcome_.code = c.end().code();
      end_others();
    }
    if (settings_.hang > 0 && silence_ > settings_.hang && !is_ending()) {
      char time[32];
      std::snprintf(time, sizeof(time), "%.3g", settings_.hang);
      outcome_.words = "no process has completed a call for " + std::string(time) + " s";
      outcome_.code = outcome::code_of_hang;
      for (int rank = 0; rank < processes_; ++rank)
        outcome_.words += (rank == 0 ? ": process " : ", process ") + std::to_string(rank) + ": " +
                          std::to_string(last_[std::size_t(rank)]) + " calls";
      end_others();
    }
  }
  bool is_ending() const { return !outcome_.is_good() || outcome_.signal != 0; }
  /// After a failure; not after a signal, of which programs may take a second one to mean: at once.
  void end_others() {
    if (outcome_.signal != 0) return;
    send(SIGTERM);
    send(SIGCONT);  // one that is stopped
    end_soon();
  }
  void end_soon() {
    if (kill_at_) return;
    kill_at_ = clock::now() + std::chrono::duration_cast<clock::duration>(
                                  std::chrono::duration<double>(settings_.grace));
  }
  /// Adds to the time without a completed call, or ends it. Time in which this process or one of
  /// the program's was stopped does not count, nor that before the first call.
  void count_silence(double passed) {
    bool is_heard = false, has_begun = false, is_stopped = false;
    for (std::size_t i = 0; i < children_.size(); ++i) {
      std::uint64_t const now = beats_[i].beats();
      is_heard |= now != last_[i];
      has_begun |= now > 0;
      is_stopped |= children_[i].is_stopped();
      last_[i] = now;
    }
    double const most = 2e-3 * look_period;
    if (is_heard)
      silence_ = 0;
    else if (has_begun && !is_stopped)
      silence_ += passed < most ? passed : most;
  }

  world_settings const& settings_;
  signals& signals_;
  int processes_, restart_;
  int port_ = 0;
  std::string token_;
  std::deque<heartbeat> beats_;
  std::deque<child> children_;
  std::deque<prefixed_lines> lines_;
  std::vector<std::uint64_t> last_;
  static constexpr int look_period = 250;  // milliseconds between two looks at heartbeats
  double silence_ = 0;
  std::optional<clock::time_point> kill_at_;
  outcome outcome_;
};

}  // namespace launcher
