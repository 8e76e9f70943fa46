// SPDX-License-Identifier: BSL-1.0
//
// GPT-2 124M in bf16: four micro-batches of 32 samples.
#include "gpt2.cuh"

int main(int argc, char** argv) {
  return bench::train_gpt2<pp::BF16, pp::MicroBatches<4>, pp::MicroBatchSize<32>>("bf16_4x32", argc,
                                                                                  argv);
}
