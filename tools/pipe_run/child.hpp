// SPDX-License-Identifier: BSL-1.0
//
// A process that the launcher has started, in a process group of its own: signals reach what it has
// started in turn, and a terminal's Ctrl-C comes once, from the launcher.
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pipe/base/uninterrupted.hpp>

#include "descriptor.hpp"

namespace launcher {

/// How a process has ended.
struct ending {
  bool is_signal = false;
  int number = 0;  ///< of the signal, or the exit status

  bool is_good() const { return !is_signal && number == 0; }
  /// As a shell has it in `$?`.
  int code() const { return is_signal ? 128 + number : number; }
  /// "was killed by signal 9 (Killed)"
  std::string words() const {
    std::string const n = std::to_string(number);
    return is_signal ? "was killed by signal " + n + " (" + strsignal(number) + ")"
                     : "ended with exit status " + n;
  }
};

/// A program that cannot be started.
struct start_error {
  int number;  ///< errno
};

/// A command, as execvp takes it, in an environment of which variables are set and others unset.
struct command {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> unset;
  int inherited = -1;  ///< a descriptor that the program gets, too
};

/// One process. What it was is left to the system until leave() (a zombie): its number, which is
/// that of its group, belongs to no other process meanwhile.
class child {
 public:
  /// outputs: descriptors in place of its standard output and error. mask: of its signals.
  ///
  /// throws: start_error; fault
  child(command const& what, std::array<int, 2> const& outputs, sigset_t const& mask) {
    channel why_not = channel::open();  // closed by the system when the program begins
    pid_t const parent = getpid();
    id_ = fork();
    if (id_ < 0) throw_fault("start a process");
    if (id_ == 0) {
      int const why = begin(what, outputs, mask, parent);
      write_all(why_not.writes.number(), {reinterpret_cast<char const*>(&why), sizeof(why)});
      _exit(127);
    }
    setpgid(id_, id_);  // here, too: a signal may be sent before the child has done so
    why_not.writes.close();
    int why = 0;
    if (!read_all(why_not.reads.number(), &why, sizeof(why))) return;
    pp::detail::uninterrupted([&] { return waitpid(id_, nullptr, 0); });
    throw start_error{why};
  }

  pid_t id() const { return id_; }
  bool has_ended() const { return has_ended_; }
  /// needs: has_ended()
  ending const& end() const { return end_; }
  bool is_stopped() const { return is_stopped_; }
  /// Asks the system for news. Returns whether it has ended since the last call.
  bool look() {
    if (has_ended_) return false;
    siginfo_t news{};
    while (has_news(WSTOPPED | WCONTINUED, news)) is_stopped_ = news.si_code == CLD_STOPPED;
    if (!has_news(WEXITED | WNOWAIT, news)) return false;
    end_ = {news.si_code != CLD_EXITED, news.si_status};
    return has_ended_ = true;
  }
  /// To it and all of its group.
  void send(int signal) const { kill(-id_, signal); }
  /// Its end is known, and nothing of its group is needed any more.
  void leave() {
    send(SIGKILL);
    waitpid(id_, nullptr, 0);
  }

 private:
  bool has_news(int kinds, siginfo_t& news) const {
    news = siginfo_t{};
    return pp::detail::uninterrupted(
               [&] { return waitid(P_PID, id_t(id_), &news, kinds | WNOHANG); }) == 0 &&
           news.si_pid != 0;
  }
  /// In the new process. Returns only if the program cannot be started: errno.
  static int begin(command const& what, std::array<int, 2> const& outputs, sigset_t const& mask,
                   pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // no process outlives a launcher that was killed
    if (getppid() != parent) _exit(127);
    int const nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    for (int i = 0; i < 2; ++i)
      if (outputs[std::size_t(i)] >= 0) dup2(outputs[std::size_t(i)], STDOUT_FILENO + i);
    fcntl(what.inherited, F_SETFD, 0);
    for (std::string const& name : what.unset) unsetenv(name.c_str());
    for (auto const& [name, value] : what.set) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (std::string const& word : what.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    execvp(words[0], words.data());
    return errno;
  }

  pid_t id_ = -1;
  ending end_;
  bool has_ended_ = false, is_stopped_ = false;
};

}  // namespace launcher
