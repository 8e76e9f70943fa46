// SPDX-License-Identifier: BSL-1.0
//
// Softmax as a layer: numbers to probabilities. Attention and CrossEntropy have their own, inside
// their kernels.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

/// y = e^x / sum e^x along the last extent.
struct Softmax {
  static constexpr bool makes_probabilities = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers() && b.needs_two_channels(b.current())) b.set(b.softmax(b.current()));
  }
};

}  // namespace pp
