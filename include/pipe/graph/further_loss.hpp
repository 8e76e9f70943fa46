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

/// A further loss in a run over a mini-batch: the leaf of its op, the number of rows that a sample
/// has in the losses before it, and the factor of a term, so that all terms together have the
/// divisor of the first loss.
struct further_loss {
  int leaf = 0, rows_before = 0;
  double factor = 0;
};
/// All of them; labels are inputs, and the first input is none.
struct further_losses {
  further_loss items[max_inputs - 1]{};
  int count = 0;
  /// That of a leaf; null if there is none, as in inference.
  PIPE_HD constexpr further_loss const* find(int leaf) const {
    for (int i = 0; i < count; ++i)
      if (items[i].leaf == leaf) return &items[i];
    return nullptr;
  }
};

}  // namespace pp::detail
