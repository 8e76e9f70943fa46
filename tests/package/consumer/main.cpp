// SPDX-License-Identifier: BSL-1.0
//
// A program with names of its own that headers use for locals, too.
#include <pipe/weights/weights.hpp>

#include <pipe/pipe.hpp>

#include <cstdio>
#include <vector>

#include "names.hpp"

struct Line : pp::Model<pp::Input<1>, pp::Linear<1>, pp::MSE> {};
using Trainer = pp::Pipeline<Line, pp::MicroBatches<2>, pp::MicroBatchSize<4>, pp::PortableHost>;

int main() {
  std::vector<float> const points{-4, -3, -2, -1, 1, 2, 3, 4};
  std::vector<float> on_line;
  for (float const point : points) on_line.push_back(2 * point + 1);
  Trainer trainer({.optimizer = {.learning_rate = 0.05}});
  double remaining = 1;
  for (int turn = 0; turn < 100; ++turn) remaining = trainer.step({points, on_line}).loss;
  std::printf("%a\n", remaining);
  return remaining < 1e-6 && pp::explain<Trainer>().size() > count ? 0 : 1;
}
