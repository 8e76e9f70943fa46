// SPDX-License-Identifier: BSL-1.0
//
// Low-rank adaptation: a trained model stays as it is, and each of its matrices gets a trained term
// of low rank beside it.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/graph/layer_option.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

namespace detail {

/// Alpha after option O: that of O, if it is one.
template <class O>
constexpr double after_alpha(double so_far) {
  if constexpr (requires { O::alpha; }) return O::alpha;
  return so_far;
}

}  // namespace detail

/// The layers L, frozen, with a trained term beside every affine map in them: y = x w + b becomes
/// y = x w + b + alpha / Rank (x A) B. `Linear`, `Attention` and `CrossAttention` have affine maps,
/// alone or inside `Seq`, `Repeat`, `Residual` and any other layers; those inside a `Frozen` there
/// get no term. The model may be cut between the layers inside as if the wrapper were absent.
///
/// A scope like Frozen, not a layer: detail::affine, by which all layers add an affine map, adds
/// the term. The factor is a formula between the two products, so no value of N columns is stored
/// for it. PEFT 0.21.2 adds the term of a MultiheadAttention's out_proj twice, and this once.
///
///     LoRA<Linear<64>, 8, Alpha<16>>        LoRA<Repeat<12, Block>, 8>
///
/// shape:   of L; for each w[K, N] A[K, Rank] and B[Rank, N]
/// options: Alpha<Numerator, Denominator> (default: Rank, a factor of 1)
/// law:     B begins as zeros, so at first the values are those of L. A is uniform in +-1/sqrt(K)
/// law:     names in files are PEFT's: base_layer.weight, lora_A.weight, lora_B.weight
/// law:     no gradients and no optimizer state for the parameters of L
/// source:  Hu et al., LoRA, 2021
template <class L, int Rank, class... Options>
struct LoRA {
  using parts = detail::layers<L>;
  using options = detail::layers<Options...>;
  static constexpr auto takes = detail::option_kinds(detail::option_kind::alpha);
  static constexpr bool decorates = true;
  static constexpr int times = 1;

  /// The factor of the low-rank terms.
  static constexpr double low_rank_scale = [] {
    double alpha = Rank;
    ((alpha = detail::after_alpha<Options>(alpha)), ...);
    return Rank > 0 ? alpha / Rank : 0;
  }();

  template <class Builder>
  static constexpr void enter(Builder& b) {
    if (!b.needs_positive(Rank)) return;
    detail::parameter_scope& scope = b.scope();
    scope.adapter = {Rank,          b.template index_of<LoRA>(), low_rank_scale != 1,
                     scope.trained, b.low_rank_terms(),          b.position()};
    scope.trained = false;
  }
  template <class Builder>
  static constexpr void leave(Builder& b) {
    detail::low_rank_term const& term = b.scope().adapter;
    if (b.low_rank_terms() == term.terms_before)
      b.report_at(wrong::lora_needs_a_linear_or_an_attention_inside, term.position, term.leaf);
    b.leave_low_rank_terms(term.terms_before);
  }

  // The formula of the factor, applied to x A.
  static constexpr bool derivative_reads_output = true;
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x * T(low_rank_scale);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T) {
    return T(low_rank_scale);
  }
};

}  // namespace pp
