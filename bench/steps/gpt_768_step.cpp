// SPDX-License-Identifier: BSL-1.0
//
// A GPT of two blocks as wide as GPT-2's.
#include "networks.hpp"
#include "program.hpp"

using namespace pp;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  return bench::answer(
      bench::usual_ways<bench::GPT<768, 12, 2, 512>, MicroBatches<4>, MicroBatchSize<1>>(
          {arguments[1], 1e-3, 1}));
}
