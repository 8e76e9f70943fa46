// SPDX-License-Identifier: BSL-1.0
//
// What a model is trained for: the last item of its list.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

/// A layer that ends a model. `labels_are_ids`: one class number per row, otherwise numbers of the output's shape.
template <class L>
concept loss_layer = requires {
  { L::labels_are_ids } -> std::convertible_to<bool>;
};

/// -log softmax(x)[label], mean over the rows of the mini-batch whose label is not -1; softmax, loss and gradient are one
/// kernel.
///
/// shape:  logits (..., V), labels (...) in [-1, V)
struct CrossEntropy {
  static constexpr bool labels_are_ids = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers()) b.loss(op_kind::cross_entropy, b.current());
  }
};

/// (x - target)^2, mean over all elements of the mini-batch.
struct MSE {
  static constexpr bool labels_are_ids = false;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers()) b.loss(op_kind::squared_error, b.current());
  }
};

}  // namespace pp
