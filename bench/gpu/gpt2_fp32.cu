// SPDX-License-Identifier: BSL-1.0
//
// GPT-2 124M in fp32: two micro-batches of 8 samples.
#include "gpt2.cuh"

int main(int argc, char** argv) {
  return bench::train_gpt2<pp::FP32, pp::MicroBatches<2>, pp::MicroBatchSize<8>>("fp32", argc,
                                                                                 argv);
}
