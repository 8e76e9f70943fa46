// SPDX-License-Identifier: BSL-1.0
//
// The run-time settings of a trainer, which may differ between two objects of one type.
#pragma once

#include <cstdint>

#include <pipe/optim/learning_rate.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// The settings of a Pipeline: see Pipeline::settings.
template <class Optimizer>
struct trainer_settings {
  std::uint64_t seed = 0;
  Optimizer optimizer{};
  /// Factor of the optimizer's learning rate at step 1, 2, ...: a learning_rate_schedule or any
  /// function of the step. Without a function the factor is 1.
  learning_rate_function learning_rate_factor{};
  /// Gradient elements are first clipped to [-clip_value, clip_value]; 0: no clipping.
  double clip_value = 0;
  double clip_norm = 0;  ///< bound of the global gradient norm; 0: no clipping
  /// Replicas compare their parameters after each step whose number this divides, and before each
  /// checkpoint; 0: only before checkpoints.
  long compare_replicas = 100;
  executor_settings runtime{};
};

}  // namespace pp::detail
