// SPDX-License-Identifier: BSL-1.0
//
// What a program goes on to do with `Trainer`: nothing here may make a second error of a mistake that was reported.
#pragma once

#include <span>

#include <pipe/pipe.hpp>

static_assert(Trainer::plan.imbalance < 10 && Trainer::plan.bubble < 1 &&
              Trainer::plan.stages[0].first_layer == 0);

inline double program(std::span<Trainer::input_type const> inputs,
                      std::span<Trainer::label_type const> labels,
                      std::span<Trainer::element> outputs) {
  Trainer trainer(
      {.seed = 1, .optimizer = {.learning_rate = 0.1, .weight_decay = 0}, .clip_norm = 1});
  Trainer::batch const batch{inputs, labels};
  for (auto& p : trainer.parameters()) p.values[0] = 0;
  trainer.parameters_changed();
  trainer.forward(inputs, outputs);
  trainer.gradients({inputs, labels});
  return trainer.step(batch).loss + trainer.step({inputs, labels}, 0.5).gradient_norm +
         trainer.evaluate(batch);
}
