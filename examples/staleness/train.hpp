// SPDX-License-Identifier: BSL-1.0
//
// The trainers of an optimizer, one for each schedule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/schedule/catalog/families.hpp>

#include "../gpt/held_out.hpp"
#include "staleness.hpp"

/// All have the same mini-batch, and so the same number of updates for the same text: 4
/// micro-batches of 2 windows, but for PipeDream, which updates after each micro-batch, one of 8.
template <class Optimizer, class Schedule, int MicroBatches>
using Trainer = pp::Pipeline<SmallGPT, pp::Stages<stages>, pp::MicroBatches<MicroBatches>,
                             pp::MicroBatchSize<windows / MicroBatches>, Schedule, Optimizer>;

/// The mini-batches of a run. Each is drawn when it is read.
template <class Trainer>
struct text_batches {
  experiment const& of;
  std::uint64_t seed;
  std::span<int> tokens, labels;

  struct iterator {
    text_batches const* range;
    long step;
    typename Trainer::batch operator*() const {
      range->of.text.draw(range->seed, std::uint64_t(step), range->tokens, range->labels);
      return {range->tokens, range->labels};
    }
    iterator& operator++() { return ++step, *this; }
    bool operator==(std::default_sentinel_t) const { return step > range->of.steps; }
  };
  iterator begin() const { return {this, 1}; }
  std::default_sentinel_t end() const { return {}; }
};

/// Trains a new model and evaluates it. Whatever the trainer, a seed stands for the same initial
/// weights and the same text in the same order.
template <class Trainer>
outcome train(experiment const& e, typename Trainer::settings settings, see_step const& see) {
  outcome result;
  // [train]
  Trainer trainer(settings);
  std::vector<int> tokens(tokens_per_step), labels(tokens_per_step);
  text_batches<Trainer> const batches{e, settings.seed, tokens, labels};
  auto const points = std::size_t(std::min(e.steps, most_points));
  auto const part_of = [&](long step) {
    return std::size_t(step - 1) * points / std::size_t(e.steps);
  };
  std::vector<double> sums(points), counts(points);
  try {
    trainer.train(batches, [&](pp::step_result const& r) {
      long const step = ++result.steps;
      sums[part_of(step)] += r.loss;
      ++counts[part_of(step)];
      return see(step, r.loss);
    });
  } catch (pp::not_finite const&) {
    result.diverged = true;
  }
  // [/train]
  for (std::size_t i = 0; i < sums.size() && counts[i] > 0; ++i)
    result.curve.push_back(sums[i] / counts[i]);
  if (!result.diverged && result.steps == e.steps)
    result.evaluation = held_out_loss(trainer, e.text, 64);
  return result;
}

/// Adds the schedules under an optimizer. No run clips, as there is no norm of all stages without a
/// flush.
///
/// Settings: a type with the optimizer `settings` and its `name`
template <class Settings>
struct with_optimizer {
  template <class Schedule, int MicroBatches>
  static void add(std::string staleness) {
    using Trainer =
        ::Trainer<std::remove_const_t<decltype(Settings::settings)>, Schedule, MicroBatches>;
    arms().push_back(
        {Schedule::name, Settings::name, std::move(staleness), Settings::settings.learning_rate,
         Trainer::plan().parameters, Trainer::plan().stages[0].versions,
         [](experiment const& e, double factor, std::uint64_t seed, see_step const& see) {
           pp::learning_rate_schedule const shape{
               .warm_up = e.steps / 20, .steps = e.steps, .floor = 0.1};
           return train<Trainer>(
               e,
               {.seed = seed,
                .optimizer = Settings::settings,
                .learning_rate_factor = [=](long step) { return factor * shape(step); }},
               see);
         }});
  }

  with_optimizer() {
    add<pp::OneFOneB, 4>("none: a flush after each update");
    add<pp::PipeDream<>, 1>(
        "3, 2, 1, 0 updates on stages 0 to 3; backward reads what forward read");
    add<pp::PipeDream2BW<>, 4>("1 update on all stages; backward reads what forward read");
    add<pp::PACI<>, 4>("forward up to 1 update; backward reads the newest weights");
  }
};
