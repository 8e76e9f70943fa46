// SPDX-License-Identifier: BSL-1.0
//
// Gradient clipping: by value as torch.nn.utils.clip_grad_value_, by norm as clip_grad_norm_, and
// by both in this order. What is not finite is not clipped away.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "laws/data.hpp"
#include "laws/worse.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

struct Net : Model<Input<2, 3>, Linear<5>, LayerNorm, Frozen<Linear<5>>, Tanh, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, SGD, FP64, PortableHost, MicroBatches<2>, Stages<3>>;

/// One step from the same start and mini-batch: parameters must move by the rate times the clipped
/// gradients.
void clipped_step(double clip_value, double clip_norm, std::vector<double> gradients, double norm) {
  constexpr double rate = 0.5;
  laws::sample_batch<Trainer> const data(1);
  Trainer t({.seed = 2,
             .optimizer = {.learning_rate = rate},
             .clip_value = clip_value,
             .clip_norm = clip_norm});
  std::vector<std::vector<double>> before;
  for (auto const& p : t.parameters()) before.emplace_back(p.values.begin(), p.values.end());
  double squares = 0;
  for (double& g : gradients) {
    if (clip_value > 0) g = std::clamp(g, -clip_value, clip_value);
    squares += g * g;
  }
  double const left = std::sqrt(squares),
               scale = clip_norm > 0 && left > clip_norm ? clip_norm / (left + 1e-6) : 1;
  CHECK(laws::same_bits(t.step(data.view()).gradient_norm,
                        norm));  // reported as it was before any clipping
  double worst = 0;
  std::size_t next = 0;
  auto const after = t.parameters();
  for (std::size_t i = 0; i < after.size(); ++i)
    for (std::size_t e = 0; e < after[i].gradients.size(); ++e, ++next) {
      CHECK(after[i].gradients[e] == gradients[next]);  // clipped by value in place, as PyTorch's
      double const expected = before[i][e] - rate * scale * gradients[next];
      worst = laws::worse(worst, std::fabs(after[i].values[e] - expected));
    }
  CHECK(next == gradients.size());
  CHECK(worst < 1e-14);
}

}  // namespace

TEST_CASE("the factor of clipping brings a norm to its limit and changes no smaller one",
          "[optim]") {
  static_assert(clip_factor(3, 0) == 1);  // no limit
  static_assert(clip_factor(3, 3) == 1);
  static_assert(clip_factor(0, 1) == 1);
  static_assert(clip_factor(4, 1) == 1 / (4 + 1e-6));  // torch.nn.utils.clip_grad_norm_
  for (double norm : {1e-300, 1e-6, 1.0, 1.5, 1e6, 1e300})
    for (double most : {1e-8, 1.0, 1e8}) {
      double const factor = clip_factor(norm, most);
      CHECK(factor > 0);
      CHECK(factor <= 1);
      CHECK(factor * norm <= most);
      if (norm > most && norm > 1) CHECK(factor * norm > most * (1 - 2e-6));
    }
  double const infinite = std::numeric_limits<double>::infinity();
  CHECK(clip_factor(infinite, 1) == 0);
  CHECK(std::isnan(clip_factor(std::nan(""), 1) * std::nan("")));
}
TEST_CASE("a step's norm is before clipping, its factor after clipping by value", "[optim]") {
  gradient_outcome const free = outcome_of(16, 16, 0.5, 0);
  CHECK(free.norm == 2);
  CHECK(free.factor == 0.5);
  gradient_outcome const clamped = outcome_of(16, 4, 0.5, 0.25);  // norms 2, and 1 when clamped
  CHECK(clamped.norm == 2);
  CHECK(clamped.factor == 0.25 / (1 + 1e-6) * 0.5);
  CHECK(outcome_of(16, 4, 0.5, 1.5).factor == 0.5);  // the clamped norm is within the limit
  CHECK(std::isnan(outcome_of(std::nan(""), 1, 1, 1).norm));
}
TEST_CASE("gradients are clipped by value, then by norm", "[optim]") {
  Trainer plain({.seed = 2});
  double const norm = plain.gradients(laws::sample_batch<Trainer>(1).view()).gradient_norm;
  auto const gradients = laws::snapshot(plain).gradients;
  double largest = 0;
  for (double g : gradients) largest = std::max(largest, std::fabs(g));
  for (double const clip_value : {0.0, largest / 8, largest * 2})
    for (double const clip_norm : {0.0, norm / 8, norm * 2})
      clipped_step(clip_value, clip_norm, gradients, norm);
}

TEST_CASE("gradients that are only looked at are not clipped", "[optim]") {
  Trainer plain({.seed = 2}), clips({.seed = 2, .clip_value = 1e-3, .clip_norm = 1e-3});
  laws::sample_batch<Trainer> const data(1);
  auto const a = plain.gradients(data.view()), b = clips.gradients(data.view());
  CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
  CHECK(laws::same_numbers(laws::snapshot(plain).gradients, laws::snapshot(clips).gradients));
}

TEST_CASE("a gradient that is not finite rejects the step before it is clipped", "[optim]") {
  struct Deep : Model<Input<3>, Linear<4>, Tanh, Linear<6>, Linear<2>, MSE> {};
  using trainer = Pipeline<Deep, SGD, PortableHost, Stages<2>>;
  // Through weights of 1e30 a gradient of ordinary size overflows, while weights of 0 before them
  // keep the loss ordinary.
  trainer t({.seed = 1, .clip_value = 0.5, .clip_norm = 1});
  auto p = t.parameters();
  for (std::size_t i : {0, 1, 3, 5})
    for (float& w : p[i].values) w = 0;
  for (std::size_t i : {2, 4})
    for (float& w : p[i].values) w = 1e30f;
  t.parameters_changed();
  auto const before = laws::snapshot(t).values;
  laws::sample_batch<trainer> const data(1);
  CHECK(std::isfinite(t.evaluate(data.view())));
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(laws::same_numbers(before, laws::snapshot(t).values));
  CHECK(t.steps() == 0);
}
