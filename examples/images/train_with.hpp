// SPDX-License-Identifier: BSL-1.0
//
// The program of a network: two stages on two threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include <pipe/data/augment.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/train/batches_ahead.hpp>
#include <pipe/weights/weights.hpp>

#include "net.hpp"
#include "train.hpp"

/// Trains Net on pictures that are moved by up to two cells; `flips`: and mirrored.
template <class Net>
void train_with(image_task const& task, training_options const& o, bool flips, see_step const& see,
                see_result const& show) {
  // [train]
  using Trainer = pp::Pipeline<Net, pp::Stages<2>, pp::MicroBatches<4>, pp::MicroBatchSize<32>,
                               pp::OneFOneB, pp::AdamW>;
  using batch = typename Trainer::batch;
  float const deviation[] = {0.25f};
  std::vector<float> const pictures = task.training.numbers({}, deviation);
  batch const data{pictures, task.training.labels};
  long const steps = steps_of(task, o, Trainer::samples);
  pp::learning_rate_schedule const rate{.warm_up = steps / 10, .steps = steps, .floor = 0.01};
  Trainer trainer({.seed = o.seed,
                   .optimizer = {.learning_rate = o.learning_rate, .weight_decay = 0.05},
                   .learning_rate_factor = rate});

  pp::augmentation const moves{.height = side,
                               .width = side,
                               .channels = task.training.channels,
                               .padding = 2,
                               .flip = flips,
                               .seed = o.seed};
  auto const move = [&](pp::owned_batch<Trainer>& b, long place) {
    pp::augment(std::span(b.inputs), moves, place);
  };

  trained result;
  bool goes_on = true;
  for (long epoch = 0; goes_on && trainer.steps() < steps; ++epoch) {
    pp::batches<Trainer> drawn(data, {.shuffle = true, .seed = o.seed, .epoch = epoch});
    for (batch const& moved : pp::batches_ahead<Trainer>(drawn, move)) {
      pp::step_result const r = trainer.step(moved);
      goes_on = see({.step = trainer.steps(),
                     .loss = r.loss,
                     .learning_rate = o.learning_rate * rate(trainer.steps()),
                     .gradient_norm = r.gradient_norm,
                     .samples_per_second = double(moved.labels.size()) / r.seconds,
                     .seconds = r.seconds,
                     .bubble = r.bubble}) &&
                trainer.steps() < steps;
      if (!goes_on) break;
    }
  }
  // [/train]
  result.steps = trainer.steps();

  // [test]
  std::vector<float> const kept_back = task.test.numbers({}, deviation);
  result.loss = pp::evaluate_all(trainer, batch{kept_back, task.test.labels});
  std::vector<float> const scores = pp::predict(trainer, kept_back);
  // [/test]
  std::size_t const classes = scores.size() / task.test.size();
  for (std::size_t i = 0; i < task.test.size(); ++i) {
    std::span const row = std::span(scores).subspan(i * classes, classes);
    auto const best = std::max_element(row.begin(), row.end());
    double sum = 0;
    for (float const x : row) sum += std::exp(double(x) - double(*best));
    result.answers.push_back(int(best - row.begin()));
    result.chances.push_back(float(1 / sum));
  }
  show(result);
  if (!o.save.empty()) pp::save_weights(trainer, o.save);
}

/// Net as a program.
template <class Net>
network network_of(bool flips) {
  using Trainer = pp::Pipeline<Net, pp::Stages<2>, pp::MicroBatches<4>, pp::MicroBatchSize<32>,
                               pp::OneFOneB, pp::AdamW>;
  return {pp::console::readable_count(Trainer::plan.parameters) + " parameters, 2 stages, 1F1B",
          Trainer::samples,
          [flips](image_task const& task, training_options const& o, see_step const& see,
                  see_result const& show) { train_with<Net>(task, o, flips, see, show); }};
}
