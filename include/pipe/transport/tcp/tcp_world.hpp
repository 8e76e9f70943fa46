// SPDX-License-Identifier: BSL-1.0
//
// The processes of a job without MPI: process 0 listens, and the other processes connect to it.
// After a hand-shake all make the same operations on small data in the same order. The job is
// fail-stop, as with MPI: after the loss of a process all end.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/transport/process/job_token.hpp>
#include <pipe/transport/process/loopback_job.hpp>
#include <pipe/transport/process/process_launch.hpp>
#include <pipe/transport/process/process_watch.hpp>
#include <pipe/transport/running_time.hpp>
#include <pipe/transport/tcp/tcp_frame.hpp>
#include <pipe/transport/tcp/tcp_guest.hpp>
#include <pipe/transport/tcp/tcp_host.hpp>
#include <pipe/transport/tcp/tcp_watch.hpp>

namespace pp::detail {

/// This process among the processes of its job. One thread makes the operations.
///
/// law: every wait ends with a failure in any process, or at the deadline
/// law: no memory is allocated for what another process announces
class tcp_world {
 public:
  /// The hand-shake with all other processes. deadline: of an operation.
  ///
  /// throws: error if the processes do not fit together; rank_error if a process is missing or lost
  [[gnu::cold]] explicit tcp_world(tcp_start const& start,
                                   std::chrono::milliseconds deadline = std::chrono::minutes(5))
      : start_(start), deadline_(tcp_signs::patience), connections_(start.processes) {
    std::unique_ptr<tcp_host> host;
    if (processes() > 1 && process() == 0) {
      host = listening();
      connections_ = host->meet();
    } else if (processes() > 1) {
      connections_ = tcp_guest(start_).meet();
    }
    heap_array<process_identity> all(processes());
    all[process()] = process_identity::own();
    {
      process_watch::doing const starts(watch_, {"starting"});
      find_neighbours(all);  // within its patience, as the watch has not begun
    }
    deadline_ = deadline;
    watch_.begin(process(), std::move(all), std::move(connections_.of[tcp_connections::watch]),
                 std::move(host));
    is_watched_ = true;
  }
  tcp_world(tcp_world const&) = delete;
  tcp_world& operator=(tcp_world const&) = delete;
  /// Waits for the other processes to come to their end, too, unless a process has failed.
  ~tcp_world() { part(); }

  /// The world of this process as its launcher says, made at the first call and ended with the
  /// program.
  ///
  /// throws: as the constructor; error if the launcher's variables are wrong
  [[gnu::cold]] static tcp_world& of_process(std::uint64_t plan = 0) {
    // Never destroyed: its thread may need it after static objects are gone.
    static tcp_world& world = *new tcp_world(launched(plan));
    static bool const is_first = [] {
#if defined(__GLIBC__)
      on_exit([](int status, void* self) { static_cast<tcp_world*>(self)->end(status); }, &world);
#endif
      return true;
    }();
    (void)is_first;
    return world;
  }

  /// The start that the launcher's variables describe; without such variables the process is alone.
  ///
  /// throws: error if the variables are wrong, or if several machines have no token
  [[gnu::cold]] static tcp_start launched(std::uint64_t plan) {
    process_launch const by = process_launch::from();
    tcp_start start;
    start.process = by.process;
    start.processes = by.processes;
    start.plan = plan;
    if (by.processes == 1) return start;
    start.at = meeting_place::from();
    start.is_of_user = !job_token::is_given();
    if (start.is_of_user && !is_on_loopback(start.at))
      throw_error<error>({"PIPE_JOB_TOKEN is not set, and MASTER_ADDR is '", start.at.address,
                          "', which other machines may reach: set it to the same 32 hexadecimal "
                          "digits in all processes of the job, as of `openssl rand -hex 16`"});
    start.token =
        start.is_of_user ? token_at_port(key_of_user(), start.at.port) : job_token::from();
    return start;
  }

  int process() const { return start_.process; }
  int processes() const { return start_.processes; }
  /// Processes on this machine, and the number of this process among them. The operating systems
  /// say so, not the launcher.
  int neighbours() const { return neighbours_; }
  int neighbour() const { return neighbour_; }
  tcp_start const& start() const { return start_; }
  /// The address at which other processes reach this process: its own address in the connection
  /// with process 0.
  [[gnu::cold]] std::string own_address() const {
    return connections_.of[tcp_connections::calls][process() == 0 ? 1 : 0].own_address().host();
  }
  tcp_watch& watch() { return watch_; }
  bool has_failed() const { return watch_.has_failed(); }

  /// Sets the deadline of the next operations; 0: none.
  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }

  // ---- operations, which all processes make in the same order ----
  // throws: rank_error if a process has failed, or does not come before the deadline; error if
  //         another process makes another operation

  /// Returns once all processes have come to the barrier.
  void barrier() { all_gather("a barrier", nullptr, 0, nullptr); }
  /// The bytes of each process, in the order of their numbers.
  ///
  /// shape: mine: [bytes] -> all: [processes, bytes]
  void gather(char const* mine, long bytes, char* all) {
    all_gather("a gathering", mine, bytes, all);
  }
  /// The least of a number in all processes.
  long least(long here) {
    heap_array<long> all(processes());
    all_gather("a minimum", &here, sizeof(here), all.begin());
    for (long const x : all) here = x < here ? x : here;
    return here;
  }
  /// Compares a number of the plan with those of the other processes.
  ///
  /// throws: error if another process has another plan
  [[gnu::cold]] void agree(std::uint64_t plan) {
    heap_array<std::uint64_t> all(processes());
    all_gather("a comparison of plans", &plan, sizeof(plan), all.begin());
    for (int p = 0; p < processes(); ++p)
      if (all[p] != plan) watch_.refuse_plan(p);
  }
  /// Sends the bytes at `data` from one process to all others, in pieces. Process 0 passes each
  /// piece on before the next piece comes.
  ///
  /// needs: the same `bytes` in all processes
  void broadcast(int from, char* data, long bytes) {
    constexpr long most = 1 << 24;
    do {
      long const n = bytes < most ? bytes : most;
      begin("a broadcast", n);
      if (process() == 0) {
        if (from != 0) receive(from, data, n);
        for (int p = 1; p < processes(); ++p)
          if (p != from) send(p, data, n);
      } else if (process() == from) {
        send(0, data, n);
      } else {
        receive(0, data, n);
      }
      data += n, bytes -= n;
    } while (bytes > 0);
  }

  /// Tells the other processes of a failure here, which ends all their waits with its text.
  ///
  /// law: the first failure of all processes stays
  [[gnu::cold]] void announce(std::string_view text) {
    watch_.fail(sentence({std::string_view(watch_.name_of(process())), ": ", text}).begin());
  }
  /// Fails all processes: another process has sent bytes that no process of this program sends.
  ///
  /// throws: error
  [[noreturn, gnu::cold]] void refuse(int process, char const* what) {
    std::string const text = sentence({"process ", process, " has sent ", what}).begin();
    watch_.fail(text);
    throw error(text);
  }
  /// Says what this process does, until the end of the scope, to processes that miss another
  /// process.
  process_watch::doing during(process_activity what) { return {watch_, what}; }

 private:
  /// Whether no other machine reaches any address of the place. A name that is not known (yet) may
  /// be the name of any machine.
  [[gnu::cold]] static bool is_on_loopback(meeting_place const& at) {
    std::string reason;
    heap_array<tcp_address> const all =
        tcp_address::of(at.address, at.port, time_limit(tcp_start().deadline), reason);
    for (tcp_address const& a : all)
      if (!a.is_loopback()) return false;
    return all.size() > 0;
  }
  /// The host of process 0, which listens. If another process 0 listens at the place, this process
  /// knocks there, so that the other job does not begin with processes of this job.
  ///
  /// throws: as tcp_host
  [[gnu::cold]] std::unique_ptr<tcp_host> listening() const {
    try {
      return std::make_unique<tcp_host>(start_);
    } catch (error const&) {
      tcp_start knock = start_;
      knock.deadline = std::chrono::milliseconds(1000);
      try {
        tcp_guest(knock).meet();
      } catch (error const&) {
      }
      throw;
    }
  }
  /// Exchanges the identities of all processes: the first operation, as the watch needs them.
  [[gnu::cold]] void find_neighbours(heap_array<process_identity>& all) {
    process_identity const mine = all[process()];
    all_gather("the start", &mine, sizeof(mine), all.begin());
    for (int p = 0; p < processes(); ++p)
      if (!all[p].is_possible(mine, p == process())) refuse(p, "a number that its process has not");
    neighbours_ = 0;
    for (int p = 0; p < processes(); ++p)
      if (all[p].machine == mine.machine) neighbours_++, neighbour_ += p < process();
  }

  /// Begins an operation of this name, in which each process sends this number of bytes.
  void begin(char const* name, long bytes) {
    if (has_failed()) throw rank_error(watch_.failure());
    name_ = name;
    bytes_ = bytes;
    number_ = operations_++;
    waiting_ = running_time();
  }
  /// Process 0 collects the bytes of all processes, in the order of their numbers, and sends all of
  /// them to all: small data takes longer to announce than to send. No two processes wait for each
  /// other: process 0 reads from all before it writes, and the others write before they read.
  void all_gather(char const* name, void const* mine, long bytes, void* all) {
    begin(name, bytes);
    char* const to = static_cast<char*>(all);
    long const n = processes();
    if (bytes > 0) std::memcpy(to + process() * bytes, mine, std::size_t(bytes));
    if (process() == 0) {
      for (int p = 1; p < n; ++p) receive(p, to + p * bytes, bytes);
      for (int p = 1; p < n; ++p) send(p, to, n * bytes);
    } else {
      send(0, to + process() * bytes, bytes);
      receive(0, to, n * bytes);
      if (bytes > 0 && std::memcmp(to + process() * bytes, mine, std::size_t(bytes)) != 0)
        refuse(0, "other bytes than it was sent");
    }
  }

  /// A number that tells operations apart: by their names and their places in the order.
  std::uint32_t mark() const {
    fnv_hash h;
    for (char const* c = name_; *c != 0; ++c) h.add(static_cast<unsigned char>(*c));
    return std::uint32_t(h.value ^ std::uint64_t(number_) * 0x9e3779b9u);
  }
  /// A frame, and then the bytes, if there are any.
  void send(int to, char const* data, long bytes) {
    tcp_frame const f(tcp_frame::call, std::uint32_t(bytes), mark());
    move(to, POLLOUT, const_cast<char*>(reinterpret_cast<char const*>(&f)), sizeof(f));
    move(to, POLLOUT, const_cast<char*>(data), bytes);
  }
  /// Reads a frame, and then the bytes directly to their place: the frame must announce the
  /// expected operation and number of bytes.
  void receive(int from, char* data, long bytes) {
    tcp_frame f;
    // Before the first operation there are signs of life, sent while other processes were missing.
    for (int signs = 0; signs < 10'000; ++signs) {
      move(from, POLLIN, reinterpret_cast<char*>(&f), sizeof(f));
      if (number_ > 0 || f.kind != tcp_frame::lives || f.length > 0) break;
    }
    if (!f.has_magic() || f.kind != tcp_frame::call || long(f.length) != bytes ||
        f.number != mark())
      differ(from, f.length);
    move(from, POLLIN, data, bytes);
  }
  [[noreturn, gnu::cold]] void differ(int from, long bytes) {
    std::string const text =
        sentence({"process ", from, " makes another call than process ", process(), ", where ",
                  name_, " of ", bytes_, " bytes is expected (", bytes,
                  " have come): all processes must make the same calls in the same order"})
            .begin();
    watch_.fail(text);
    throw error(text);
  }
  /// Moves all bytes to or from another process. events: POLLIN or POLLOUT. Bytes that a process
  /// sent before it failed are read, so that a process which ends after an operation does not fail
  /// the operation in others.
  ///
  /// throws: rank_error if a process has failed, has ended, or does not come before the deadline of
  ///         the operation: see running_time
  void move(int with, short events, char* data, long bytes) {
    constexpr int look = 20;  // milliseconds
    tcp_socket const& s = connections_.of[tcp_connections::calls][with];
    for (long done = 0; done < bytes;) {
      moved const m = events == POLLIN ? s.read(data + done, bytes - done, done)
                                       : s.write(data + done, bytes - done, done);
      if (m == moved::some) continue;
      if (has_failed()) throw rank_error(watch_.failure());
      if (m != moved::none_now) lose(with);
      if (int const p = watch_.ended_before(number_); p >= 0)
        fail({"process ", p, " has ended the program, while ",
              std::string_view(watch_.name_of(process())), " was ",
              std::string_view(watch_.activity())});
      waiting_.skip();
      s.waits(events, look);
      waiting_.look();
      if (waiting_.is_beyond(deadline_))
        fail({std::string_view(watch_.name_of(process())), ": timed out after ",
              double(deadline_.count()) / 1000, " s waiting for process ", with, ", ",
              std::string_view(watch_.activity())});
    }
  }
  [[noreturn, gnu::cold]] void fail(std::initializer_list<piece> pieces) {
    watch_.fail(sentence(pieces).begin());
    throw rank_error(watch_.failure());
  }
  /// A connection has ended: the watch soon says why.
  [[noreturn, gnu::cold]] void lose(int with) {
    for (int i = 0; is_watched_ && !has_failed() && i < 5000; ++i) sleep_for(1'000'000);
    if (has_failed()) throw rank_error(watch_.failure());
    fail({"process ", with, " was lost: it has ended its connection, while ",
          std::string_view(watch_.name_of(process())), " was ",
          std::string_view(watch_.activity())});
  }

  bool part() {
    process_watch::doing const ends(watch_, {"ending the program"});
    return watch_.part(operations_);
  }
  /// The end of the program, by exit() or a return from main. A status that is not 0 is a loss for
  /// the other processes; otherwise the processes wait for each other.
  [[gnu::cold]] void end(int status) {
    if (watch_.is_ending()) return;
    if (status != 0) watch_.leave(status);
    if (status == 0) watch_.leave_all();
    if (status != 0 || !part()) watch_.end_all(status != 0 ? status : 1);
  }

  tcp_start start_;
  std::chrono::milliseconds deadline_;
  tcp_connections connections_;
  int neighbours_ = 1, neighbour_ = 0;
  bool is_watched_ = false;
  // The operation that is going on.
  char const* name_ = "";
  long bytes_ = 0, number_ = 0, operations_ = 0;
  running_time waiting_;
  tcp_watch watch_;
};

}  // namespace pp::detail
