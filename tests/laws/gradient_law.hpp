// SPDX-License-Identifier: BSL-1.0
//
// The gradient law: what `gradients` gives is the slope of what `evaluate` gives. In double, every
// parameter is moved a little up and down; in float, on every instruction set, gradients are
// compared with those in double.
#pragma once

#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <pipe/train/check_gradients.hpp>

#include "laws/data.hpp"

namespace laws {

/// How far two lists of numbers are apart: the norm of the difference over the norm, and the
/// largest difference of two elements over the largest element.
struct distance {
  double difference = 0, size = 0, most = 0, largest = 0;
  void add(double found, double expected) {
    difference += (found - expected) * (found - expected);
    size += expected * expected;
    most = std::max(most, std::fabs(found - expected));
    largest = std::max(largest, std::fabs(expected));
    if (std::isnan(found)) most = difference = INFINITY;
  }
  double relative() const {
    return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
  }
  double relative_most() const { return largest > 0 ? most / largest : most; }
};

/// How far the gradients in float are from those in double, per parameter as in
/// pp::detail::gradient_report.
struct float_report {
  double worst = 0;  // over parameters, of relative() and relative_most()
  int worst_parameter = -1;
  long elements = 0;
  double smallest = INFINITY;  // norm of a parameter's gradient: 0 would make the law empty
  void take(int parameter, distance const& d, long count) {
    double const far = std::max(d.relative(), d.relative_most());
    if (worst_parameter < 0 || far > worst) worst = far, worst_parameter = parameter;
    elements += count;
    smallest = std::min(smallest, std::sqrt(d.size));
  }
};

/// Compares the gradients of a trainer in double with central differences of its loss, away from
/// special values.
template <class Trainer>
pp::detail::gradient_report compare_with_differences(std::uint64_t seed, double eps = 1e-5) {
  Trainer trainer(typename Trainer::settings{.seed = seed});
  disturb(trainer, seed, 0.3);
  return pp::detail::compare_gradients(trainer, sample_batch<Trainer>(seed).view(), eps);
}

/// Checks that the gradients of a trainer in double are central differences, and none of them 0.
template <class Trainer>
void gradients_hold(std::uint64_t seed) {
  pp::detail::gradient_report const r = compare_with_differences<Trainer>(seed);
  INFO("seed " << seed << ", parameter " << r.worst_parameter);
  CHECK(r.worst < 1e-7);
  CHECK(r.smallest > 1e-6);
}

/// Compares a trainer in float with one in double for the same model, parameters and mini-batch.
template <class Float, class Double>
float_report compare_with_double(std::uint64_t seed) {
  Float narrow(typename Float::settings{.seed = seed});
  Double wide(typename Double::settings{.seed = seed});
  disturb(narrow, seed, 0.3);
  copy_parameters(narrow, wide);
  sample_batch<Float> const data(seed);
  sample_batch<Double> copy(seed);
  copy.inputs.assign(data.inputs.begin(), data.inputs.end());
  copy.labels.assign(data.labels.begin(), data.labels.end());
  for (int k = 1; k < pp::detail::max_inputs; ++k)
    copy.numbers[k].assign(data.numbers[k].begin(), data.numbers[k].end());
  double const loss = narrow.gradients(data.view()).loss,
               expected = wide.gradients(copy.view()).loss;
  float_report report;
  distance losses;
  losses.add(loss, expected);
  report.take(-1, losses, 1);
  auto found = narrow.parameters();
  auto truth = wide.parameters();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].gradients.empty()) continue;
    distance d;
    for (std::size_t e = 0; e < found[i].gradients.size(); ++e)
      d.add(double(found[i].gradients[e]), truth[i].gradients[e]);
    report.take(int(i), d, long(found[i].gradients.size()));
  }
  return report;
}

}  // namespace laws
