// SPDX-License-Identifier: BSL-1.0
// [first_model]
#include <cmath>
#include <cstdio>
#include <vector>

#include <pipe/pipe.hpp>
using namespace pp;

struct Spirals : Model<Input<2>, Linear<64>, Tanh, Linear<64>, Tanh, Linear<2>, CrossEntropy> {};
using Trainer = Pipeline<Spirals, Stages<2>, MicroBatches<8>, MicroBatchSize<32>, Adam>;

struct Points {  // two arms of a spiral, half a turn apart
  std::vector<float> where = std::vector<float>(2 * Trainer::samples);
  std::vector<int> arm = std::vector<int>(Trainer::samples);
  explicit Points(float offset) {
    for (std::size_t i = 0; i < arm.size(); ++i) {
      float const t = (float(i) + offset) / Trainer::samples,
                  angle = 9 * t + 3.1416f * float(i % 2);
      where[2 * i] = t * std::cos(angle);
      where[2 * i + 1] = t * std::sin(angle);
      arm[i] = int(i % 2);
    }
  }
};

int main() {
  Points const seen(0), unseen(0.5);
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  for (int step = 0; step <= 300; ++step) {
    double const loss = trainer.step({seen.where, seen.arm}).loss;
    if (step % 50 == 0) std::printf("step %3d: loss %.4f\n", step, loss);
  }
  double const right = accuracy(predict(trainer, unseen.where), unseen.arm);
  std::printf("%.1f %% of unseen points are on the right arm\n", 100 * right);
}
// [/first_model]
