// SPDX-License-Identifier: BSL-1.0
//
// What happens to the other processes when one fails, and when the processes are not one program.
// Each case is a program of its own, started by run.py, because a failure over MPI is the end:
// failures CASE. Every process says how it ended.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include <pipe/mpi.hpp>
#include <pipe/pipe.hpp>

#include "laws/data.hpp"
#include "transport/models.hpp"

using namespace pp;
using transports::Shared, transports::Small;
using Many = Small<Shared, Mpi, Stages<8>>;

namespace {

bool is(char const* a, char const* b) { return std::strcmp(a, b) == 0; }
void say(char const* what) {
  std::printf("process %d: %s\n", Mpi::process(), what);
  std::fflush(stdout);
}

/// The last process does something in the third micro-batch of its second step.
template <class Something>
void in_the_last(Something something) {
  Many many({.seed = 3});
  laws::sample_batch<Many> const data(1);
  bool const is_last = Mpi::process() == Mpi::processes() - 1;
  many.step(data.view());
  std::string first;
  try {
    many.watch(data.view(), [&](launch_seen const& seen) {
      if (is_last && seen.chunk == 7 && seen.micro_batch == 2) something();
    });
  } catch (std::exception const& e) {
    first = e.what();
  }
  say(first.c_str());
  try {
    many.step(data.view());
  } catch (error const& e) {
    say(e.what());
  }
}

void run(char const* what) {
  if (is(what, "throws")) in_the_last([] { throw std::runtime_error("broken"); });
  if (is(what, "exits")) in_the_last([] { std::exit(5); });
  if (is(what, "dies")) in_the_last([] { kill(getpid(), SIGKILL); });
  if (is(what, "ends_early")) {
    Many many({.seed = 3});
    laws::sample_batch<Many> const data(1);
    many.step(data.view());
    if (Mpi::process() == 1) return say("ends early");
    try {
      many.step(data.view());
    } catch (error const& e) {
      say(e.what());
    }
  }
  if (is(what, "other_plan")) {
    try {
      if (Mpi::process() == 1)
        Small<Shared, Mpi, Stages<8>, GPipe> other;
      else
        Many many;
    } catch (error const& e) {
      say(e.what());
    }
  }
  if (is(what, "too_many_processes")) {
    try {
      Small<Shared, Mpi, Stages<2>> few;
    } catch (error const& e) {
      say(e.what());
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2) run(arguments[1]);
  say("ends");
}
