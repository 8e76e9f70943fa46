// SPDX-License-Identifier: BSL-1.0
//
// GPT-2 124M in bf16, all products by our own kernels for every GPU: two micro-batches of 8
// samples.
#include "gpt2.cuh"

int main(int argc, char** argv) {
  return bench::train_gpt2<pp::BF16, pp::MicroBatches<2>, pp::MicroBatchSize<8>, pp::OwnProducts>(
      "bf16_own", argc, argv);
}
