// SPDX-License-Identifier: BSL-1.0
//
// The program of docs/howto/several_gpus.md, and one whose replicas divide the optimizer's state,
// with NCCL itself: they compile and link, and say so where there is no GPU.
// [nccl]
#include <cstdio>
#include <vector>

#include <pipe/nccl.cuh>
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<2>, Linear<16>, Tanh, Linear<16>, Tanh, Linear<1>, MSE> {};
using Trainer = Pipeline<Net, Stages<4>, MicroBatches<8>, MicroBatchSize<4>, AdamW, Cuda, Nccl>;

void train() {
  Trainer trainer({.optimizer = {.learning_rate = 0.01}});
  std::vector<float> x(2 * Trainer::samples), y(Trainer::samples);
  for (int i = 0; i < Trainer::samples; ++i) {  // y = x0 x1, in every process the same numbers
    x[2 * i] = float(i % 8) / 4 - 1, x[2 * i + 1] = float(i / 8) / 2 - 1;
    y[i] = x[2 * i] * x[2 * i + 1];
  }
  step_result last;
  for (int step = 0; step < 500; ++step) last = trainer.step({x, y});
  if (Nccl::process() == 0) std::printf("processes %d, loss %.6f\n", Nccl::processes(), last.loss);
}
// [/nccl]

// [zero]
using Divided =
    Pipeline<Net, Stages<4>, MicroBatches<8>, MicroBatchSize<4>, AdamW, BF16, Cuda, Nccl, ZeRO<1>>;
// [/zero]

void divide() {
  Divided trainer;
  std::vector<float> x(std::size_t(2 * trainer.batch_samples())), y(x.size() / 2);
  trainer.step({x, y});
}

int main() {
  int count = 0;
  bool const has_device = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  try {
    train();
    divide();
    return 0;
  } catch (error const& e) {
    std::printf("%s\n", e.what());
    return has_device;
  }
}
