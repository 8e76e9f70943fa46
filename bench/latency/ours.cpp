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
  std::vector<float> x(latency::inputs, 0.1f), y(latency::outputs, 0.2f), found(latency::outputs);
  network<Policy> const alone(1);
  network<Policy>::workspace room;
  latency::print("network", calls, [&] { alone.forward(x, found, room); });
  latency::print("forward", calls, [&] { t.forward(x, found); });
  latency::print("step", calls, [&] { t.step({x, y}); });
}
