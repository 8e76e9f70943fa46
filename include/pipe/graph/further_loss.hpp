// SPDX-License-Identifier: BSL-1.0
//
// The further losses of a model: which op is one, the layer types that bring them, and what a run
// knows of each.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/op.hpp>

namespace pp::detail {

/// Whether L is a FurtherLoss, whose type is the leaf of its op.
template <class L>
inline constexpr bool brings_further_loss = requires { L::is_further_loss; };
/// The same for leaf `leaf` of a list; false if there is none.
template <class... L>
constexpr bool is_further_loss(int leaf, layers<L...>) {
  bool const is[] = {brings_further_loss<L>..., false};
  return leaf < int(sizeof...(L)) && is[leaf];
}
/// Whether o is a further loss: its labels are an input of the model.
constexpr bool is_further_loss(op const& o) {
  return is_loss(o.kind) && o.in[1].where == space::input;
}

/// Rows of the labels of input i, or 0 if these are not labels of a further loss.
template <class Leaves>
constexpr int further_loss_rows(input_record const& in, Leaves leaves) {
  if (!is_further_loss(in.leaf, leaves)) return 0;
  return in.is_ids ? int(in.form.elements()) : in.form.rows();
}

/// The most losses of a model: labels of further ones are inputs, and the first input is none.
inline constexpr int most_losses = max_inputs;
/// The number of losses of a model that ends in Loss.
template <class Loss>
inline constexpr int losses_in = 1;
template <class Loss>
  requires requires { typename Loss::further; }
inline constexpr int losses_in<Loss> = 1 + leaf_count(typename Loss::further{});

/// The divisor of a loss, of the sum of its terms' weights: 1 if no term counts, whose sum is 0,
/// and 0 / 0 would be NaN.
PIPE_HD constexpr double loss_divisor(double counted) { return counted > 0 ? counted : 1; }

/// A further loss in a run over a mini-batch.
struct further_loss {
  int leaf = 0;         ///< of its op
  int rows_before = 0;  ///< that a sample has in the losses before it
  double factor = 0;    ///< of a term's gradient, beside one over the divisor of the first loss
  double weight = 0;    ///< see LossWeight
  double counted = 0;   ///< sum of the weights of its own terms
  bool sums = false;    ///< a sum, not a mean
};
/// All of them.
struct further_losses {
  further_loss items[most_losses - 1]{};
  int count = 0;
  /// That of a leaf; null if there is none, as in inference.
  PIPE_HD constexpr further_loss const* find(int leaf) const {
    for (int i = 0; i < count; ++i)
      if (items[i].leaf == leaf) return &items[i];
    return nullptr;
  }
  /// The loss of a mini-batch, of the value of each: the first one plus weight times each other.
  PIPE_HD constexpr double sum_of(double const* values) const {
    double sum = values[0];
    for (int i = 0; i < count; ++i) sum += items[i].weight * values[i + 1];
    return sum;
  }
};

}  // namespace pp::detail
