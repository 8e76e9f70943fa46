// SPDX-License-Identifier: BSL-1.0
//
// Runs a program and strikes at its calls of the system, as ptrace shows them: those of the
// program, of its threads, and of every library in it.
//
//     strike WAY FILE PROGRAM [ARGUMENT...]
//
//     count       changes nothing
//     kill=N      SIGKILL at call N, before it has any effect
//     interrupt   each call that a signal may interrupt fails with EINTR, and succeeds when it is
//                 made again
//     short       each transfer of more than one byte moves half of what it was asked for
//
// WAY:AFTER begins with the call after the first one of the name AFTER. FILE receives the number of
// calls, and how often each was struck at. The exit code is the program's, or that of its signal;
// 77 where the system does not let one program trace another.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/futex.h>

namespace {

constexpr int skipped = 77;

/// What can become of a call. fails: it may fail with EINTR, without any effect. has_effect: it may
/// do so, and what was asked for has happened, or does so later. moves: its third argument is a
/// number of bytes, and fewer may be moved.
struct call {
  char const* name;
  long number;
  bool fails = true, has_effect = false, moves = false;
};
constexpr call calls[] = {
    {"read", SYS_read, true, false, true},
    {"write", SYS_write, true, false, true},
    {"pread64", SYS_pread64, true, false, true},
    {"pwrite64", SYS_pwrite64, true, false, true},
    {"recvfrom", SYS_recvfrom, true, false, true},
    {"sendto", SYS_sendto, true, false, true},
    {"readv", SYS_readv},
    {"writev", SYS_writev},
    {"recvmsg", SYS_recvmsg},
    {"sendmsg", SYS_sendmsg},
    {"openat", SYS_openat},
    {"fsync", SYS_fsync},
    {"fdatasync", SYS_fdatasync},
    {"ftruncate", SYS_ftruncate},
    {"fallocate", SYS_fallocate},
    {"flock", SYS_flock},
    {"ppoll", SYS_ppoll},
    {"epoll_pwait", SYS_epoll_pwait},
    {"accept", SYS_accept},
    {"accept4", SYS_accept4},
    {"connect", SYS_connect, true, true},
    {"close", SYS_close, true, true},
    {"wait4", SYS_wait4},
    {"waitid", SYS_waitid},
    {"futex", SYS_futex},
    {"rt_sigtimedwait", SYS_rt_sigtimedwait},
    {"clock_nanosleep", SYS_clock_nanosleep},
#ifdef __x86_64__
    {"open", SYS_open},
    {"poll", SYS_poll},
    {"epoll_wait", SYS_epoll_wait},
#endif
    {"mmap", SYS_mmap, false},
    {"getsid", SYS_getsid, false},
    {"signalfd4", SYS_signalfd4, false},
};
call const* known(long number) {
  for (call const& c : calls)
    if (c.number == number) return &c;
  return nullptr;
}
std::string name_of(long number) {
  call const* const c = known(number);
  return c != nullptr ? c->name : std::to_string(number);
}

[[noreturn]] void give_up(char const* what, int code = 1) {
  std::perror(what);
  std::exit(code);
}

/// The registers of a thread that stops at a call.
class registers {
 public:
#ifdef __x86_64__
  explicit registers(pid_t thread) : thread_(thread) { move(PTRACE_GETREGSET); }
  /// At the entry: there is no call.
  void skip() { all_.orig_rax = ~0ull, move(PTRACE_SETREGSET); }
  void set_third_argument(long value) { all_.rdx = std::size_t(value), move(PTRACE_SETREGSET); }
  /// At the exit.
  void set_result(long value) { all_.rax = std::size_t(value), move(PTRACE_SETREGSET); }

 private:
  void move(__ptrace_request direction) {
    iovec of{&all_, sizeof(all_)};
    if (ptrace(direction, thread_, NT_PRSTATUS, &of) != 0 && errno != ESRCH)  // it is killed
      give_up("strike: registers");
  }
  pid_t thread_;
  user_regs_struct all_{};
#else  // only `count` and `kill`
  explicit registers(pid_t) { std::exit(skipped); }
  void skip() {}
  void set_third_argument(long) {}
  void set_result(long) {}
#endif
};

class tracer {
 public:
  tracer(std::string const& way, std::string after, char const* file)
      : way_(way.substr(0, way.find('='))), after_(std::move(after)), file_(file),
        has_begun_(after_.empty()) {
    if (std::size_t const at = way.find('='); at != way.npos) last_ = std::atol(&way[at + 1]);
  }

  /// Runs the program to its end. Returns its status, as wait() has it.
  int run(char** words) {
    int go[2];
    if (pipe(go) != 0) give_up("strike: pipe");
    program_ = fork();
    if (program_ == 0) {
      char one;
      close(go[1]);
      if (read(go[0], &one, 1) == 1) execvp(words[0], words);
      give_up(words[0], 127);
    }
    long const options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEEXEC;  // threads are followed, and no other programs
    if (ptrace(PTRACE_SEIZE, program_, 0, options) != 0)
      kill(program_, SIGKILL), give_up("strike: ptrace", skipped);
    if (write(go[1], "", 1) != 1) give_up("strike: write");

    int result = 0, status = 0;
    for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;)
      if (thread > 0 && WIFSTOPPED(status))
        go_on(thread, WSTOPSIG(status), status >> 16);
      else if (thread == program_)
        result = status;
    report();
    return result;
  }

 private:
  void report() const {
    std::ofstream file(file_);
    file << "calls " << count_ << '\n';
    for (auto const& [number, times] : struck_) file << name_of(number) << ' ' << times << '\n';
  }

  /// A thread, and what was done to its calls.
  struct state {
    std::set<long> interrupted;  // those that succeed when they are made again
    bool fails = false;          // the one that it is in, when it ends
  };

  void go_on(pid_t thread, int signal, int event) {
    if (signal == (SIGTRAP | 0x80)) {
      stopped_at_call(thread);
      signal = 0;
    } else if (event == PTRACE_EVENT_EXEC) {
      runs_ = true;
      signal = 0;
    } else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) {  // by SIGSTOP, with all others
      ptrace(PTRACE_LISTEN, thread, 0, 0);
      return;
    } else if (event != 0) {
      signal = 0;
    }
    ptrace(PTRACE_SYSCALL, thread, 0, signal);
  }
  void stopped_at_call(pid_t thread) {
    struct __ptrace_syscall_info info{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0) return;  // it is killed
    state& now = threads_[thread];
    if (info.op == PTRACE_SYSCALL_INFO_EXIT && now.fails) {
      registers(thread).set_result(-EINTR);
      now.fails = false;
    }
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !runs_) return;
    long const number = long(info.entry.nr);
    if (!has_begun_) {
      has_begun_ = name_of(number) == after_;
      return;
    }
    ++count_;
    if (way_ == "kill" && count_ == last_) {
      ++struck_[number];
      report();  // those that wait for it may end this process, too, as soon as it is gone
      kill(program_, SIGKILL);
    }
    if (call const* const c = known(number); c != nullptr) {
      if (way_ == "interrupt" && c->fails && may_wait(info)) interrupt(thread, *c, now);
      if (way_ == "short" && c->moves && info.entry.args[2] > 1 &&
          is_stream(thread, info.entry.args[0])) {
        ++struck_[number];
        registers(thread).set_third_argument(long(info.entry.args[2] + 1) / 2);
      }
    }
  }
  void interrupt(pid_t thread, call const& c, state& now) {
    if (now.interrupted.erase(c.number) > 0) return;
    now.interrupted.insert(c.number);
    ++struck_[c.number];
    now.fails = true;
    if (!c.has_effect) registers(thread).skip();
  }
  /// Of the operations on a futex, those that wait.
  static bool may_wait(struct __ptrace_syscall_info const& info) {
    long const operation = long(info.entry.args[1]) & FUTEX_CMD_MASK;
    return info.entry.nr != SYS_futex || operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
  }
  /// Whether a descriptor is one of bytes, and not of records, as those of signalfd() are.
  static bool is_stream(pid_t thread, unsigned long long descriptor) {
    std::string const link =
        "/proc/" + std::to_string(thread) + "/fd/" + std::to_string(descriptor);
    std::array<char, 8> to{};
    [[maybe_unused]] auto const length = readlink(link.c_str(), to.data(), to.size() - 1);
    std::string const kind(to.data());
    return kind.starts_with("/") || kind.starts_with("socket:") || kind.starts_with("pipe:");
  }

  std::string way_, after_;
  char const* file_;
  bool has_begun_, runs_ = false;
  long last_ = -1, count_ = 0;
  pid_t program_ = -1;
  std::map<pid_t, state> threads_;
  std::map<long, long> struck_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  std::string const way = words[1];
  std::size_t const colon = way.find(':');
  tracer of(way.substr(0, colon), colon == way.npos ? "" : way.substr(colon + 1), words[2]);
  int const status = of.run(words + 3);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  rlimit const no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(WTERMSIG(status), SIG_DFL);
  std::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
