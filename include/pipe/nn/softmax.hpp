// SPDX-License-Identifier: BSL-1.0
//
// Softmax as a layer. Attention and CrossEntropy have their own, inside their kernels: a model that
// ends in CrossEntropy has no Softmax before it.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

/// y = e^x / sum e^x along the last extent.
///
/// shape:  (..., C) -> (..., C), C >= 2
/// law:    computed from x less its largest element, so that no exponential overflows; NaN makes
///         the row NaN
struct Softmax {
  static constexpr bool makes_probabilities = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers() && b.needs_two_channels(b.current())) b.set(b.softmax(b.current()));
  }
};

}  // namespace pp
