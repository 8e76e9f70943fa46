// SPDX-License-Identifier: BSL-1.0
//
// Normalisation of each row, with learned scale (and shift).
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

/// y = (x - mean) / sqrt(variance + 1e-5) * gamma + beta over the last extent, as PyTorch's LayerNorm.
struct LayerNorm {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    int const width = b.current().form.columns();
    operand const gamma = b.parameter(1, width, {distribution::constant, 1}, false, {"weight"});
    operand const beta = b.parameter(1, width, {distribution::constant, 0}, false, {"bias"});
    b.set(b.norm(b.current(), gamma, beta, true, 1e-5f));
  }
};

/// y = x / sqrt(mean(x^2) + epsilon) * gamma, as PyTorch's RMSNorm: epsilon is the distance from 1 to the next float.
struct RMSNorm {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    operand const gamma = b.parameter(1, b.current().form.columns(), {distribution::constant, 1}, false, {"weight"});
    b.set(b.norm(b.current(), gamma, operand{}, false, 1.1920929e-7f));
  }
};

}  // namespace pp
