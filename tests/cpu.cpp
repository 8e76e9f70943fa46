// SPDX-License-Identifier: BSL-1.0
//
// cpu NAME: ends with the code that ctest reads as "skipped" where this CPU has not the instruction
// set of that name, so that a run shows which kernels it left out.
#include <cstdio>
#include <cstring>

#include <pipe/backend/host/isa.hpp>

int main(int count, char** words) {
  using pp::host::isa;
  isa const wanted = count > 1 && std::strcmp(words[1], "avx512") == 0 ? isa::avx512 : isa::avx2;
  if (pp::host::best_isa() >= wanted) return 0;
  std::printf("skipped: this CPU has no %s; no test runs the kernels for it\n", words[count - 1]);
  return 77;
}
