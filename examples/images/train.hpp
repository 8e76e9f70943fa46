// SPDX-License-Identifier: BSL-1.0
//
// Training of a network for a task, and its answers to the test.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <pipe/metrics/metrics.hpp>

#include "task.hpp"

struct training_options {
  long epochs = 3, steps = 0;  ///< steps: if above 0, the most
  std::uint64_t seed = 1;
  double learning_rate = 3e-3;
  std::string save;  ///< a file for the weights, or empty
};

/// Steps of a training with mini-batches of `samples` each.
inline long steps_of(image_task const& task, training_options const& o, long samples) {
  long const steps = o.epochs * ((long(task.training.size()) + samples - 1) / samples);
  return o.steps > 0 && o.steps < steps ? o.steps : steps;
}

/// The result of a training.
struct trained {
  long steps = 0;
  double loss = 0;             ///< of the test, mean
  std::vector<int> answers;    ///< by picture of the test
  std::vector<float> chances;  ///< of each answer, as the network sees it
};

/// Shows a step; false ends the training.
using see_step = std::function<bool(pp::step_metrics const&)>;
/// Shows what has come of a training, before the weights are saved.
using see_result = std::function<void(trained const&)>;

/// A network as a program: what it is, and how it is trained.
struct network {
  std::string words;  ///< parameters and stages
  long samples = 0;   ///< of a mini-batch
  std::function<void(image_task const&, training_options const&, see_step const&,
                     see_result const&)>
      train;
};

/// The networks for letters and digits of fonts, for digits, and for CIFAR's pictures, which may be
/// mirrored.
network glyph_network();
network mnist_network();
network cifar_network();
