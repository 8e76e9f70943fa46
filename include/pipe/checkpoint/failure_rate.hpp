// SPDX-License-Identifier: BSL-1.0
//
// Arithmetic of failures: how often some of many machines fail, and how often a run should
// therefore save.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/base/constexpr_sqrt.hpp>

namespace pp {

/// The chance that at least one of `machines` machines fails, if each fails with chance p in [0,
/// 1], independently of the others.
///
/// law: 1 - (1 - p)^machines
constexpr double chance_of_failure(double p, long machines) {
  double none = 1, square = 1 - p;  // (1 - p)^1, ^2, ^4 ...
  for (long n = machines; n > 0; n /= 2) {
    if (n % 2 == 1) none *= square;
    square *= square;
  }
  return 1 - none;
}

/// The mean time between failures of `machines` machines, if each fails within `period` with chance
/// p in (0, 1), at a constant rate and independently of the others.
///
/// units: those of period
/// law:   -period / (machines ln(1 - p))
constexpr double time_between_failures(double p, double period, long machines = 1) {
  double const z = p / (2 - p);  // -ln(1 - p) = 2 (z + z^3/3 + z^5/5 ...)
  double sum = 0, power = z;
  for (long k = 1;; k += 2, power *= z * z) {
    double const next = sum + power / double(k);
    if (!(next > sum)) break;
    sum = next;
  }
  return period / (2 * sum * double(machines));
}

/// The time from the end of a checkpoint to the begin of the next with which a run that fails now
/// and then ends soonest, restarts included. save: the time that the run waits for a checkpoint;
/// between_failures: the mean time between two failures, which come at a constant rate.
///
/// units: one unit of time for all three
/// law:   sqrt(2 save M) (1 + sqrt(save / 2M) / 3 + (save / 2M) / 9) - save for save < 2 M, else M
/// source: Daly, A higher order estimate of the optimum checkpoint interval for restart dumps,
///         2006, equation 37; its first term alone: Young, A first order approximation to the
///         optimum checkpoint interval, 1974
constexpr double checkpoint_interval(double save, double between_failures) {
  double const ratio = save / (2 * between_failures);
  if (!(ratio < 1)) return between_failures;
  double const root = detail::constexpr_sqrt(ratio);
  return 2 * between_failures * root * (1 + root / 3 + ratio / 9) - save;
}

}  // namespace pp
