// SPDX-License-Identifier: BSL-1.0
//
// A network of width 512 with small mini-batches.
#include "networks.hpp"
#include "program.hpp"

using namespace pp;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  return bench::answer(
      bench::usual_ways<bench::MLP<512>, MicroBatches<4>, MicroBatchSize<16>>({arguments[1]}));
}
