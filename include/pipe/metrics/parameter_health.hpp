// SPDX-License-Identifier: BSL-1.0
//
// Statistics of a step by parameter, on demand: how far the parameter moved, and how many of its
// units learn nothing. A step costs nothing where no statistics are asked for.
//
//     for (parameter_health const& p : health_of_step(trainer, [&] { trainer.step(batch); }))
//       std::printf("%-30s moved by %.1e of its norm, %ld of %ld units idle\n", p.name.c_str(),
//                   p.update_ratio(), p.idle_units, p.units);
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <pipe/base/config.hpp>

namespace pp {

/// Statistics of a parameter in one step.
struct parameter_health {
  std::string name;          ///< as in weight files
  int layer = 0;             ///< top-level layer, as `explain` counts
  double norm = 0;           ///< Euclidean, before the step
  double change = 0;         ///< norm of the difference that the step made
  double gradient_norm = 0;  ///< 0 for a parameter that is not trained
  /// Units: outputs of a weight, elements of a vector; idle: without any gradient in this
  /// mini-batch, as a ReLU that no sample reaches. Both are 0 where this process has no gradient of
  /// the parameter.
  long units = 0, idle_units = 0;

  /// The relative change, about 1e-3 in a healthy run of Adam: far more is unstable, with far less
  /// nothing is learned.
  double update_ratio() const {
    return norm > 0 ? change / norm : change > 0 ? std::numeric_limits<double>::infinity() : 0;
  }
};

/// Calls step(), which makes a step of the trainer, and returns the statistics of each parameter of
/// this process, in the order of parameters().
///
/// cost:   a copy of this process's parameters, and three reads of them
/// throws: what step() throws
template <class Trainer, std::invocable Step>
std::vector<parameter_health> health_of_step(Trainer& trainer, Step step) {
  std::vector<std::vector<typename Trainer::element>> before;
  for (auto const& p : trainer.parameters()) before.emplace_back(p.values.begin(), p.values.end());
  step();
  std::vector<parameter_health> all;
  std::size_t at = 0;
  for (auto const& p : trainer.parameters()) {
    auto const& old = before[at++];
    if (old.empty()) continue;
    parameter_health h{p.name, p.layer};
    for (std::size_t i = 0; i < old.size(); ++i) {
      double const w = double(old[i]), moved = double(p.values[i]) - w;
      h.norm += w * w;
      h.change += moved * moved;
    }
    std::size_t const columns = std::size_t(p.columns);
    std::vector<bool> learns(p.gradients.empty() ? 0 : columns);
    for (std::size_t i = 0; i < p.gradients.size(); ++i) {
      double const g = double(p.gradients[i]);
      h.gradient_norm += g * g;
      if (g != 0) learns[i % columns] = true;
    }
    h.norm = std::sqrt(h.norm);
    h.change = std::sqrt(h.change);
    h.gradient_norm = std::sqrt(h.gradient_norm);
    h.units = long(learns.size());
    for (bool const l : learns) h.idle_units += !l;
    all.push_back(std::move(h));
  }
  return all;
}

}  // namespace pp
