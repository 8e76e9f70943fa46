// SPDX-License-Identifier: BSL-1.0
//
// Multi-head self-attention with its two projections.
#pragma once

#include <concepts>

#include <pipe/nn/linear.hpp>

namespace pp {

/// Every position sees only itself and those before it (the default).
struct Causal {};
/// Every position sees every other.
struct NotCausal {};

/// y = concat_h(softmax(q_h k_h' / sqrt(d)) v_h) w_o + b_o with q, k, v = x w_qkv + b_qkv and d = C / Heads.
///
/// shape:  (T, C) -> (T, C); w_qkv[C, 3C], w_o[C, C]; the T x T scores are never in memory
/// options: Causal (default) or NotCausal; NoBias
template <int Heads, class... Options>
  requires((std::same_as<Options, NoBias> || std::same_as<Options, Causal> || std::same_as<Options, NotCausal>) && ...)
struct Attention {
  static constexpr bool causal = !(std::same_as<Options, NotCausal> || ...);
  static constexpr bool has_bias = !(std::same_as<Options, NoBias> || ...);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !b.needs_positive(Heads)) return;
    int const width = b.current().form.columns();
    if (width % Heads != 0) b.complain(fault_kind::heads_do_not_divide, shape(Heads), shape(width));
    if (!b.ok()) return;
    handle const qkv = affine(b, b.current(), 3 * width, has_bias, {"in_proj_weight", "in_proj_bias"});
    b.set(affine(b, b.attention(qkv, Heads, causal), width, has_bias, {"out_proj.weight", "out_proj.bias"}));
  }
};

}  // namespace pp
