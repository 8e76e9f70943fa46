// SPDX-License-Identifier: BSL-1.0
#include <pipe/optim/muon.hpp>

#include "train.hpp"

/// Its updates of matrices are as large as AdamW's.
struct muon {
  static constexpr char const* name = "muon";
  static constexpr pp::Muon settings{
      .learning_rate = 1.2e-2,
      .weight_decay = 0.1,
      .adjust = decltype(pp::Muon::adjust)::match_rms_adamw,
      .others = {.learning_rate = 2e-3, .beta2 = 0.99, .weight_decay = 0.1}};
};
static with_optimizer<muon> const schedules;
