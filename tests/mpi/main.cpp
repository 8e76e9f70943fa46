// SPDX-License-Identifier: BSL-1.0
//
// A program of tests that mpirun starts: every process runs all of them, and says so at the end,
// since the exit code of some mpiruns says nothing of a process that ended early.
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

#include <cstdio>

#include "mpi/between.hpp"

int main(int count, char** arguments) {
  int const code = Catch::Session().run(count, arguments);
  std::printf("process %d of %d: %s\n", Between::process(), Between::processes(),
              code == 0 ? "good" : "bad");
  std::fflush(stdout);
  return code;
}
