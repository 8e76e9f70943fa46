// SPDX-License-Identifier: BSL-1.0
//
// The program of docs/howto/several_processes.md.

// [mpi]
#include <cstdio>
#include <vector>

#include <pipe/mpi.hpp>
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<2>, Linear<16>, Tanh, Linear<16>, Tanh, Linear<1>, MSE> {};
using Trainer = Pipeline<Net, Stages<4>, MicroBatches<8>, MicroBatchSize<4>, AdamW, Mpi>;

int main() {
  Trainer trainer({.optimizer = {.learning_rate = 0.01}});
  std::vector<float> x(2 * Trainer::samples), y(Trainer::samples);
  for (int i = 0; i < Trainer::samples; ++i) {  // y = x0 x1, in every process the same numbers
    x[2 * i] = float(i % 8) / 4 - 1, x[2 * i + 1] = float(i / 8) / 2 - 1;
    y[i] = x[2 * i] * x[2 * i + 1];
  }
  step_result last;
  for (int step = 0; step < 500; ++step) last = trainer.step({x, y});
  if (Mpi::process() == 0) std::printf("processes %d, loss %.6f\n", Mpi::processes(), last.loss);
}
// [/mpi]

namespace {

struct GPT : Model<Tokens<256, 16>, Embedding<8>, Residual<LayerNorm, Attention<2>>, Linear<256>,
                   CrossEntropy> {};

namespace replicas {
// [replicas]
using Trainer =
    Pipeline<GPT, MicroBatches<4>, MicroBatchSize<2>, GradientAccumulation<8>, AdamW, Mpi>;
static_assert(Trainer::samples == 64);
// [/replicas]
}  // namespace replicas

namespace by_speed {
// [by_speed]
using Trainer =
    Pipeline<GPT, MicroBatches<1>, MicroBatchSize<8>, GradientAccumulationBySpeed<16>, AdamW, Mpi>;
// [/by_speed]
static_assert(Trainer::samples == 128);
}  // namespace by_speed

namespace divided {
// [divided]
using Trainer =
    Pipeline<GPT, MicroBatches<1>, MicroBatchSize<2>, GradientAccumulation<8>, AdamW, ZeRO<2>, Mpi>;
// [/divided]
static_assert(Trainer::samples == 16);
}  // namespace divided

}  // namespace
