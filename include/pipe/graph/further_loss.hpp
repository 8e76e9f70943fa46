// SPDX-License-Identifier: BSL-1.0
//
// The further losses of a model: which op is a further loss, which layer types add further losses,
// and the record that a run has of each.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/op.hpp>

namespace pp::detail {

/// Whether L is a FurtherLoss, whose type is the leaf of its op.
template <class L>
inline constexpr bool brings_further_loss = requires { L::is_further_loss; };
/// Whether leaf `leaf` of a list is a FurtherLoss; false if there is no such leaf.
template <class... L>
constexpr bool is_further_loss(int leaf, layers<L...>) {
  bool const is[] = {brings_further_loss<L>..., false};
  return leaf < int(sizeof...(L)) && is[leaf];
}
/// Whether o is a further loss: its labels are an input of the model.
constexpr bool is_further_loss(op const& o) {
  return is_loss(o.kind) && o.in[1].where == space::input;
}

/// The input of a loss: the result of its chain.
struct loss_input {
  operand at{};
  long elements = 0;       ///< of a sample
  unsigned char axis = 0;  ///< of its rows: see op::axis
};
constexpr loss_input input_of_loss(op const& loss) {
  return {loss.in[0], long(loss.rows) * loss.columns, loss.axis};
}
/// Lists the inputs of the further losses of a model, in the order of the losses.
///
/// shape: ops -> inputs[further losses]
constexpr void list_further_inputs(view<op> ops, loss_input* inputs) {
  for (op const& o : ops)
    if (is_further_loss(o)) *inputs++ = input_of_loss(o);
}

/// Rows of input `in`, per sample, if it holds the labels of a further loss; else 0.
template <class Leaves>
constexpr int further_loss_rows(input_record const& in, Leaves leaves) {
  if (!is_further_loss(in.leaf, leaves)) return 0;
  return in.is_ids ? int(in.form.elements()) : in.form.rows();
}

/// The maximum number of losses of a model: the first one, and a further loss for each input after
/// the first, since the labels of a further loss are an input.
inline constexpr int most_losses = max_inputs;
/// The number of losses of a model that ends in Loss.
template <class Loss>
inline constexpr int losses_in = 1;
template <class Loss>
  requires requires { typename Loss::further; }
inline constexpr int losses_in<Loss> = 1 + leaf_count(typename Loss::further{});

/// The divisor of a loss from `counted`, the sum of its terms' weights. It is 1 if no term counts,
/// so that the loss is 0 and not 0 / 0.
PIPE_HD constexpr double loss_divisor(double counted) { return counted > 0 ? counted : 1; }

/// A further loss in the run of a mini-batch.
struct further_loss {
  int leaf = 0;         ///< the leaf of its op
  int rows_before = 0;  ///< rows of a sample in all losses before this one
  double factor = 0;    ///< the factor of a term's gradient, beside 1 / divisor of the first loss
  double weight = 0;    ///< see LossWeight
  double counted = 0;   ///< sum of the weights of this loss's terms
  bool sums = false;    ///< the loss is the sum of its terms, not their mean
};
/// All further losses of a model.
struct further_losses {
  further_loss items[most_losses - 1]{};
  int count = 0;
  /// The further loss of a leaf; null if there is none, as in inference.
  PIPE_HD constexpr further_loss const* find(int leaf) const {
    for (int i = 0; i < count; ++i)
      if (items[i].leaf == leaf) return &items[i];
    return nullptr;
  }
  /// The loss of a mini-batch: values[0], of the first loss, plus weight times value for each
  /// further loss.
  PIPE_HD constexpr double sum_of(double const* values) const {
    double sum = values[0];
    for (int i = 0; i < count; ++i) sum += items[i].weight * values[i + 1];
    return sum;
  }
};

}  // namespace pp::detail
