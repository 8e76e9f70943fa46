// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

// [optimizer]
struct adamw {
  static constexpr char const* name = "adamw";
  static constexpr pp::AdamW settings{.learning_rate = 2e-3, .beta2 = 0.99, .weight_decay = 0.1};
};
static with_optimizer<adamw> const schedules;
// [/optimizer]
