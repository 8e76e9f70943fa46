// SPDX-License-Identifier: BSL-1.0
//
// A network of width 1024 with mini-batches of 256.
#include "networks.hpp"
#include "program.hpp"

using namespace pp;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  return bench::answer(bench::ways_of_mlp<1024>({arguments[1]}));
}
