// SPDX-License-Identifier: BSL-1.0
//
// Forward and step of one sample of a network as reinforcement learning has it: see
// bench/latency.py. Argument: calls of each.
#include <cstdlib>
#include <vector>

#include <pipe/infer/network.hpp>
#include <pipe/pipe.hpp>

#include "times.hpp"

using namespace pp;

struct Policy : Model<Input<latency::inputs>, Linear<64>, Tanh, Linear<64>, Tanh,
                      Linear<latency::outputs>, MSE> {};
using Trainer = Pipeline<Policy, Adam>;

int main(int count, char** arguments) {
  int const calls = count > 1 ? std::atoi(arguments[1]) : 1000;
  Trainer t({.seed = 1});
  std::vector<std::vector<float>> x, y;
  for (int i = 0; i < latency::samples; ++i) {
    x.emplace_back();
    y.emplace_back();
    for (int k = 0; k < latency::inputs; ++k) x.back().push_back(latency::number(i, k));
    for (int k = 0; k < latency::outputs; ++k) y.back().push_back(latency::number(k, i));
  }
  std::vector<float> found(latency::outputs);
  network<Policy> const alone(1);
  network<Policy>::workspace room;
  latency::print("network", calls, [&](int i) { alone.forward(x[std::size_t(i)], found, room); });
  latency::print("forward", calls, [&](int i) { t.forward(x[std::size_t(i)], found); });
  latency::print("step", calls, [&](int i) { t.step({x[std::size_t(i)], y[std::size_t(i)]}); });
}
