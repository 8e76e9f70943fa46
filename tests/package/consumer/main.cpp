// SPDX-License-Identifier: BSL-1.0
//
// A program with names of its own that headers use for locals, too.
#include <pipe/train/weights.hpp>

#include <pipe/pipe.hpp>

#include <vector>

#include "names.hpp"

struct Line : pp::Model<pp::Input<1>, pp::Linear<1>, pp::MSE> {};
using Trainer = pp::Pipeline<Line, pp::MicroBatches<2>, pp::MicroBatchSize<4>, pp::PortableHost>;

int main() {
  std::vector<float> const x{-4, -3, -2, -1, 1, 2, 3, 4};
  std::vector<float> y;
  for (float const value : x) y.push_back(2 * value + 1);
  Trainer trainer({.optimizer = {.learning_rate = 0.05}});
  double loss = 1;
  for (int step = 0; step < 100; ++step) loss = trainer.step({x, y}).loss;
  return loss < 1e-6 && pp::explain<Trainer>().size() > count ? 0 : 1;
}
