// SPDX-License-Identifier: BSL-1.0
//
// One process of a job by sockets: member CASE [DEADLINE]. test_start_up.py starts several, by the
// variables that launchers set, and reads what they say. A process that is to end in a phase says
// when it does.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <pipe/transport/tcp/tcp_links.hpp>
#include <pipe/transport/tcp/tcp_mesh.hpp>
#include <pipe/transport/tcp/tcp_world.hpp>

#include "tcp/plan.hpp"

using namespace pp;
using namespace pp::detail;

/// As the system's, which takes its time for one name.
extern "C" int getaddrinfo(char const* of, char const* port, addrinfo const* hints,
                           addrinfo** found) {
  using function = int(char const*, char const*, addrinfo const*, addrinfo**);
  bool const is_name = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (is_name && of != nullptr && std::strcmp(of, "slow.example") == 0) sleep(1000);
  return reinterpret_cast<function*>(dlsym(RTLD_NEXT, "getaddrinfo"))(of, port, hints, found);
}

namespace {

char const *name = "", *phase = "", *way = "";
int own = 0;

bool is(char const* a, char const* b) { return std::strcmp(a, b) == 0; }
void say(char const* what) {
  std::printf("process %d: %s\n", own, what);
  std::fflush(stdout);
}
/// The victim ends in this phase, by the way that is asked for.
void arrive(char const* at, int victim) {
  if (!is(phase, at) || own != victim) return;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("strikes at %ld.%09ld\n", long(now.tv_sec), now.tv_nsec);
  std::fflush(stdout);
  if (is(way, "killed")) kill(getpid(), SIGKILL);
  if (is(way, "stopped")) kill(getpid(), SIGSTOP);
  if (is(way, "exits")) std::exit(5);
  if (is(way, "returns")) std::exit(0);
}

/// Every operation, of sizes that are no multiples of anything.
bool operations_are_right(tcp_world& w) {
  bool is_right = true;
  int const n = w.processes(), p = w.process();
  w.set_deadline(transports::no_deadline);  // which has no nanoseconds; one process is waited for
  if (p == 1) usleep(50'000);
  for (long bytes : {1L, 7L, 4096L, 100'003L}) {
    std::vector<char> mine(std::size_t(bytes), char('a' + p)), all(std::size_t(n * bytes));
    w.gather(mine.data(), bytes, all.data());
    for (long i = 0; i < n * bytes; ++i)
      is_right = is_right && all[std::size_t(i)] == 'a' + i / bytes;
  }
  for (int from = 0; from < n; ++from)
    for (long bytes : {0L, 1L, 33L << 20}) {
      std::vector<char> data(std::size_t(bytes), p == from ? char('A' + from) : '?');
      w.broadcast(from, data.data(), bytes);
      for (char const c : data) is_right = is_right && c == 'A' + from;
    }
  is_right = is_right && w.least(100 - p) == 101 - n && w.least(5 + p) == 5;
  w.agree(17);
  w.barrier();
  return is_right && w.neighbours() == n && w.neighbour() == p;
}

/// A message from the process before this one, of a trainer that this ends.
///
/// throws: rank_error if another process sends what it should not
bool message_of_neighbour_is_right(tcp_world& w) {
  tcp_links links(w);
  tcp_trainer trainer;
  std::lock_guard const lock(links.calls());
  links.add(trainer, 4);
  int const n = w.processes(), to = (own + 1) % n, from = (own + n - 1) % n;
  char sent = char('a' + own), received = 0;
  tcp_request out, in, end;
  out.kind = tcp_request::sends, out.peer = to, out.data = &sent;
  in.kind = tcp_request::receives, in.peer = from, in.data = &received;
  end.kind = tcp_request::ends, end.peer = to;
  out.tag = in.tag = 3, out.bytes = in.bytes = 1;
  for (tcp_request* r : {&in, &out, &end}) links.start(*r);
  while (!(in.is_done && out.is_done && end.is_done && trainer.ended == 1)) {
    links.advance();
    if (w.has_failed()) throw rank_error(w.watch().failure());
    usleep(1000);
  }
  links.remove(trainer);
  return received == 'a' + from;
}

void run(std::chrono::milliseconds deadline, int victim) {
  tcp_start start = tcp_world::launched(plan_of_program());
  own = start.process;
  start.deadline = deadline;
  arrive("before", victim);
  // That of an operation is short where one is to pass.
  tcp_world world(start, std::chrono::seconds(is(name, "late") ? 2 : 60));
  say("has begun");
  if (is(name, "world")) say(operations_are_right(world) ? "is right" : "is wrong");
  if (is(name, "late") && own != 0) world.during({"late"}), world.barrier();
  if (is(name, "late") && own == 0) {
    // Longer than the deadline of an operation, but alive.
    process_watch::doing const computes(world.watch(), {"computing"});
    sleep(3);
  }
  if (is(name, "mesh")) {
    connect_all(world);
    say("is connected");
    world.barrier();
  }
  if (is(name, "links")) say(message_of_neighbour_is_right(world) ? "is right" : "is wrong");
  if (is(name, "fails") && own == 1) {
    world.announce("broken");
    throw error("broken");
  }
  if (is(name, "fails")) world.barrier();
  if (is(name, "other_call")) {
    if (own == 1)
      world.least(1);
    else
      world.barrier();
  }
  if (is(name, "other_plan_later")) world.agree(own == 1 ? 4 : 5);
  if (is(name, "ends_early") && own != 1) {
    process_watch::doing const trains(world.watch(), {"training"});
    world.barrier();
  }
  if (is(name, "lost")) {
    process_watch::doing const trains(world.watch(), {"training"});
    world.barrier();
    arrive("steady", victim);
    for (int i = 0; i < 200; ++i) {
      world.barrier();
      usleep(10'000);
    }
  }
  if (is(name, "short")) world.barrier();
  if (is(name, "idle")) {  // no thread waits for another process
    process_watch::doing const computes(world.watch(), {"computing"});
    world.barrier();
    arrive("idle", victim);
    for (;;) sleep(1);
  }
}

}  // namespace

int main(int count, char** arguments) {
  name = count > 1 ? arguments[1] : "";
  long const deadline = count > 2 ? std::atol(arguments[2]) : 20'000;
  int const victim = count > 3 ? std::atoi(arguments[3]) : -1;
  phase = count > 4 ? arguments[4] : "";
  way = count > 5 ? arguments[5] : "";
  if (is(name, "plan"))
    return std::printf("%llu\n", static_cast<unsigned long long>(plan_of_program())) < 0;
  if (is(name, "sleeps")) return sleep(3) != 0 || true;
  try {
    if (is(name, "program")) {  // as a program does: the world ends with it
      tcp_world& world = tcp_world::of_process(plan_of_program());
      own = world.process();
      world.barrier();
      say("has begun");
      arrive("steady", victim);
      world.barrier();
    } else {
      run(std::chrono::milliseconds(deadline), victim);
    }
    say("ends");
  } catch (rank_error const& e) {
    say((std::string("rank_error: ") + e.what()).c_str());
    return 1;
  } catch (error const& e) {
    say((std::string("error: ") + e.what()).c_str());
    return 1;
  }
  return 0;
}
