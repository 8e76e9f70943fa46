// SPDX-License-Identifier: BSL-1.0
//
// The laws of accumulations, for every backend: gradients and loss are added in a balanced binary
// tree, and an accumulation without samples adds nothing.
#pragma once

#include "catch.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "laws/data.hpp"

namespace laws {

/// Gradients and loss of accumulation number `accumulation` of four alone, as parts of the
/// mini-batch's. An accumulation's mean has a fourth of the terms, a power of two, so a fourth of
/// it has the same bits.
template <class Sum, class Accumulation>
std::vector<typename Sum::element> quarter_of_accumulation(sample_batch<Sum> const& data,
                                                           int accumulation, double& loss) {
  Accumulation one({.seed = 5});
  auto const all = data.template view<Accumulation>(Sum::samples);
  auto const part = [&](auto const& values, long per_sample) {
    return std::span(values).subspan(std::size_t(accumulation * Accumulation::samples * per_sample),
                                     std::size_t(Accumulation::samples * per_sample));
  };
  loss = one.gradients({part(all.inputs, Accumulation::inputs_per_sample),
                        part(all.labels, Accumulation::labels_per_sample)})
             .loss /
         4;
  auto gradients = snapshot(one).gradients;
  for (auto& g : gradients) g /= 4;
  return gradients;
}
template <class T>
std::vector<T> sum_of(std::vector<T> a, std::vector<T> const& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

/// Sum: a trainer of four accumulations. Accumulation: the same of one.
template <class Sum, class Accumulation>
void accumulations_are_added_in_a_tree() {
  static_assert(Sum::samples == 4 * Accumulation::samples);
  sample_batch<Sum> const data(3);
  double loss[4];
  std::array<std::vector<typename Sum::element>, 4> accumulation;
  for (int i = 0; i < 4; ++i)
    accumulation[std::size_t(i)] = quarter_of_accumulation<Sum, Accumulation>(data, i, loss[i]);
  Sum four({.seed = 5});
  double const sum = four.gradients(data.view()).loss;
  auto const tree =
      sum_of(sum_of(accumulation[0], accumulation[1]), sum_of(accumulation[2], accumulation[3]));
  CHECK(same_numbers(snapshot(four).gradients, tree));
  CHECK(sum == (loss[0] + loss[1]) + (loss[2] + loss[3]));
  CHECK(four.evaluate(data.view()) == sum);
  // Which a chain is not.
  auto const chain =
      sum_of(sum_of(sum_of(accumulation[0], accumulation[1]), accumulation[2]), accumulation[3]);
  CHECK(!same_numbers(chain, tree));
}

/// Sum: a trainer of four accumulations. Two: the same of two.
template <class Sum, class Two>
void accumulations_without_samples_add_nothing() {
  sample_batch<Sum> const data(4);
  constexpr int accumulation = Sum::samples / 4;
  for (int samples : {1, accumulation, accumulation + 3, 2 * accumulation}) {
    Sum four({.seed = 5});
    Two two({.seed = 5});
    // What the mini-batch before has left must not stay.
    four.gradients(data.view()), two.gradients(data.template view<Two>(Two::samples));
    auto const a = four.step(data.view(samples)), b = two.step(data.template view<Two>(samples));
    CHECK(a.loss == b.loss);
    CHECK(a.gradient_norm == b.gradient_norm);
    CHECK(same_numbers(snapshot(four).values, snapshot(two).values));
    CHECK(four.evaluate(data.view(samples)) == two.evaluate(data.template view<Two>(samples)));
  }
}

}  // namespace laws
