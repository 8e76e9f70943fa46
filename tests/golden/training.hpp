// SPDX-License-Identifier: BSL-1.0
//
// Fifty steps of training against PyTorch's, from the same weights on the same mini-batches.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "golden/record.hpp"

namespace golden {

inline constexpr std::size_t training_steps = 50;

struct course {
  std::vector<double> losses, norms;
};

/// What the steps of a golden file's training report.
template <class Trainer>
course train(record const& theirs) {
  batches<Trainer> const data(theirs);
  Trainer trainer;
  theirs.load(trainer);
  course c;
  for (std::size_t step = 0; step < training_steps; ++step) {
    pp::step_result const r = trainer.step(data[step]);
    c.losses.push_back(r.loss);
    c.norms.push_back(r.gradient_norm);
  }
  return c;
}

/// Every loss by itself: an error of the later ones, which training multiplies, must not hide
/// behind the earlier.
inline void check_course(course const& ours, record const& theirs) {
  auto const losses = theirs.numbers<double>("loss"), norms = theirs.numbers<double>("norm");
  REQUIRE(losses.size() == training_steps);
  for (std::size_t s = 0; s < training_steps; ++s) {
    std::string const where = theirs.name() + ": step " + std::to_string(s + 1) + ": ";
    check_near(where + "loss", std::vector{ours.losses[s]}, std::vector{losses[s]});
    check_near(where + "gradient norm", std::vector{ours.norms[s]}, std::vector{norms[s]});
  }
  CHECK(losses.back() < 0.9 * losses.front());
}

/// The gradients of the first mini-batch.
template <class Trainer>
void check_gradients_of(record const& theirs) {
  batches<Trainer> const data(theirs);
  Trainer trainer;
  theirs.load(trainer);
  trainer.gradients(data[0]);
  auto const wanted = theirs.of_trained(trainer, "gradient");
  auto const parameters = trainer.parameters();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    check_near(theirs.name() + ": gradient of " + parameters[i].name, parameters[i].gradients,
               wanted[i]);
}

}  // namespace golden
