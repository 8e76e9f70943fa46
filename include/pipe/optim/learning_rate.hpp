// SPDX-License-Identifier: BSL-1.0
//
// Learning-rate schedules: linear warm-up, then a shape down to a floor. Plain functions of the step.
#pragma once

#include <cmath>

namespace pp {

enum class decay_shape { constant, linear, cosine };

/// The factor on the learning rate at step 1, 2, ...: rises linearly to 1 over `warm_up` steps, then follows `shape` until
/// `steps`, where it is `floor` (constant: stays 1).
///
/// law: 0 < result <= 1 for floor > 0; result == 1 at step == warm_up
struct learning_rate_schedule {
  decay_shape shape = decay_shape::cosine;
  long warm_up = 0;
  long steps = 1;
  double floor = 0.1;

  double operator()(long step) const {
    if (step <= warm_up && warm_up > 0) return double(step) / double(warm_up);
    if (shape == decay_shape::constant) return 1;
    double done = steps > warm_up ? double(step - warm_up) / double(steps - warm_up) : 1;
    if (done > 1) done = 1;
    double const falling =
        shape == decay_shape::linear ? 1 - done : 0.5 * (1 + std::cos(3.14159265358979323846 * done));
    return floor + (1 - floor) * falling;
  }
};

}  // namespace pp
