// SPDX-License-Identifier: BSL-1.0
//
// The laws of leaves, for every backend: gradients and loss are added in a balanced binary tree,
// and a leaf without samples adds nothing.
#pragma once

#include "catch.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "laws/data.hpp"

namespace laws {

/// Gradients and loss of leaf number `leaf` of four alone, as parts of the mini-batch's. A leaf's
/// mean has a fourth of the terms, a power of two, so a fourth of it has the same bits.
template <class Sum, class Leaf>
std::vector<typename Sum::element> quarter_of_leaf(sample_batch<Sum> const& data, int leaf,
                                                   double& loss) {
  Leaf one({.seed = 5});
  auto const all = data.template view<Leaf>(Sum::samples);
  auto const part = [&](auto const& values, long per_sample) {
    return std::span(values).subspan(std::size_t(leaf * Leaf::samples * per_sample),
                                     std::size_t(Leaf::samples * per_sample));
  };
  loss = one.gradients({part(all.inputs, Leaf::inputs_per_sample),
                        part(all.labels, Leaf::labels_per_sample)})
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

/// Sum: a trainer of four leaves. Leaf: the same of one.
template <class Sum, class Leaf>
void leaves_are_added_in_a_tree() {
  static_assert(Sum::samples == 4 * Leaf::samples);
  sample_batch<Sum> const data(3);
  double loss[4];
  std::array<std::vector<typename Sum::element>, 4> leaf;
  for (int i = 0; i < 4; ++i) leaf[std::size_t(i)] = quarter_of_leaf<Sum, Leaf>(data, i, loss[i]);
  Sum four({.seed = 5});
  double const sum = four.gradients(data.view()).loss;
  auto const tree = sum_of(sum_of(leaf[0], leaf[1]), sum_of(leaf[2], leaf[3]));
  CHECK(same_numbers(snapshot(four).gradients, tree));
  CHECK(sum == (loss[0] + loss[1]) + (loss[2] + loss[3]));
  CHECK(four.evaluate(data.view()) == sum);
  // Which a chain is not.
  auto const chain = sum_of(sum_of(sum_of(leaf[0], leaf[1]), leaf[2]), leaf[3]);
  CHECK(!same_numbers(chain, tree));
}

/// Sum: a trainer of four leaves. Two: the same of two.
template <class Sum, class Two>
void leaves_without_samples_add_nothing() {
  sample_batch<Sum> const data(4);
  constexpr int leaf = Sum::samples / 4;
  for (int samples : {1, leaf, leaf + 3, 2 * leaf}) {
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
