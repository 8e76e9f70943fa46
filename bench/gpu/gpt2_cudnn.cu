// SPDX-License-Identifier: BSL-1.0
//
// GPT-2 124M in bf16, attention forward by cuDNN: two micro-batches of 8 samples.
#include <pipe/cudnn_attention.cuh>

#include "gpt2.cuh"

int main(int argc, char** argv) {
  return bench::train_gpt2<pp::BF16, pp::MicroBatches<2>, pp::MicroBatchSize<8>,
                           pp::CudnnAttention>("bf16_cudnn", argc, argv);
}
