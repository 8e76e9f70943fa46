// SPDX-License-Identifier: BSL-1.0
//
// What each process of a program of tests that mpirun starts says at its end, after all tests,
// since the exit code of some mpiruns says nothing of a process that ended early.
#include <cstdio>

#include "mpi/between.hpp"

void say_end(bool good);  // of tests/main.cpp
void say_end(bool good) {
  std::printf("process %d of %d: %s\n", Between::process(), Between::processes(),
              good ? "good" : "bad");
  std::fflush(stdout);
}
