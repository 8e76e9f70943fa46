// SPDX-License-Identifier: BSL-1.0
//
// The checks of a trainer's settings.
#pragma once

#include <pipe/base/error.hpp>
#include <pipe/base/ieee_arithmetic.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/optim/setting_check.hpp>

namespace pp::detail {

/// The settings of a new trainer, after all checks that need no memory. Compiled: its
/// compiled_pipeline.
///
/// throws: data_error for a setting out of range; error as check_at_construction
template <class Compiled, class Settings>
[[gnu::cold]] Settings checked_settings_of(Settings s) {
  using optimizer = typename Compiled::optimizer;
  require_ieee_arithmetic();
  Compiled::check_at_construction();
  custom::setting_check const of_optimizer(optimizer::name), of_trainer;
  of_optimizer.amount("learning_rate", s.optimizer.learning_rate);
  if constexpr (checked_settings<optimizer>) s.optimizer.check(of_optimizer);
  s.learning_rate_factor.check(custom::setting_check("learning_rate_factor"));
  of_trainer.amount("clip_value", s.clip_value);
  of_trainer.amount("clip_norm", s.clip_norm);
  of_trainer.amount("compare_replicas", double(s.compare_replicas));
  of_trainer.amount("runtime.speed", s.runtime.speed);
  return s;
}

/// The learning rate of a step.
///
/// throws: data_error if learning_rate_factor returns a negative value or one that is not finite
template <class Settings>
double learning_rate_of(Settings const& s, long step) {
  if (!s.learning_rate_factor) return s.optimizer.learning_rate;
  double const factor = s.learning_rate_factor(step);
  if (!custom::setting_check::is_amount(factor))
    throw_error<data_error>({"learning_rate_factor(", step, "): expected ",
                             custom::setting_check::amounts, ", got ", factor});
  return s.optimizer.learning_rate * factor;
}

}  // namespace pp::detail
