// SPDX-License-Identifier: BSL-1.0
//
// Four blocks of a small LLaMA: RMSNorm, grouped heads with rotary positions, SwiGLU.
#include "../../examples/models/transformers.hpp"
#include "program.hpp"

using namespace pp;

using Network = models::Llama<4, 256, 704, 8, 2, 256, 10000, Linear<256, NoBias>, 256>;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  return bench::answer(
      bench::usual_ways<Network, MicroBatches<4>, MicroBatchSize<2>>({arguments[1], 1e-3, 1}));
}
