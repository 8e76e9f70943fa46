// SPDX-License-Identifier: BSL-1.0
//
// Multi-head self-attention with its two projections.
#pragma once

#include <concepts>

#include <pipe/nn/attention_mask.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/norm.hpp>
#include <pipe/nn/soft_cap.hpp>

namespace pp {

/// Grouped-query attention (Ainslie et al., 2023): K heads of keys and values, each shared by
/// Heads / K heads of queries.
template <int K>
struct KeyValueHeads {
  static constexpr auto option = detail::option_kind::key_value_heads;
};
/// Heads of D elements, however wide the value is: the projections are C -> Heads * D and back.
/// Without it D = C / Heads.
template <int D>
struct HeadSize {
  static constexpr auto option = detail::option_kind::head_size;
};
/// Rotary position embedding (Su et al., 2021): rotates queries and keys by angles proportional to
/// their positions, so that scores depend on distances. The two halves of a head are paired, as in
/// Hugging Face's Llama.
template <int Base = 10000>
struct RoPE {
  static constexpr auto option = detail::option_kind::rotation;
};

/// RMSNorm of each head of queries and of keys, before any rotation: with one learned scale [d] for
/// all heads of queries and one for all heads of keys. The projections are then three, called
/// q_proj, k_proj and v_proj in weight files, and the scales q_norm and k_norm, as in Qwen3.
/// Numerator/Denominator > 0 is added to the mean of squares.
///
/// source: Henry et al., Query-key normalization for Transformers, 2020; Qwen3, 2025
template <long long Numerator = 1, long long Denominator = 1'000'000>
struct QKNorm {
  static constexpr auto option = detail::option_kind::head_norm;
  static constexpr detail::option_number number = Epsilon<Numerator, Denominator>::number;
};

namespace detail {

/// The names of the two projections, alone and as PEFT adapts a MultiheadAttention.
inline constexpr affine_names in_projection{"in_proj_weight", "in_proj_bias",
                                            "base_layer.in_proj_weight", "base_layer.in_proj_bias"};
inline constexpr affine_names out_projection{"out_proj.weight",
                                             "out_proj.bias",
                                             "base_layer.out_proj.base_layer.weight",
                                             "base_layer.out_proj.base_layer.bias",
                                             "base_layer.out_proj.lora_A.weight",
                                             "base_layer.out_proj.lora_B.weight"};
/// Those of queries, keys, values and results where each has a module of its own.
inline constexpr affine_names query_projection_alone{
    "q_proj.weight",          "q_proj.bias",          "q_proj.base_layer.weight",
    "q_proj.base_layer.bias", "q_proj.lora_A.weight", "q_proj.lora_B.weight"};
inline constexpr affine_names key_projection_alone{
    "k_proj.weight",          "k_proj.bias",          "k_proj.base_layer.weight",
    "k_proj.base_layer.bias", "k_proj.lora_A.weight", "k_proj.lora_B.weight"};
inline constexpr affine_names value_projection_alone{
    "v_proj.weight",          "v_proj.bias",          "v_proj.base_layer.weight",
    "v_proj.base_layer.bias", "v_proj.lora_A.weight", "v_proj.lora_B.weight"};
inline constexpr affine_names out_projection_alone{
    "out_proj.weight",          "out_proj.bias",          "out_proj.base_layer.weight",
    "out_proj.base_layer.bias", "out_proj.lora_A.weight", "out_proj.lora_B.weight"};

/// The settings of an attention, from its options. kv_heads: as many as heads unless an option says
/// otherwise.
struct attention_settings {
  int heads = 0, kv_heads = 0, rotary_base = 0;
  int given_head_size = 0;
  int given_positions = 1;  // of a Window or a Prefix
  double epsilon = 0;       // of QKNorm; 0: none
  bool says_head_size = false, says_rotary = false, causal = true, has_bias = true;
  score_attributes scores{};
  /// The elements of a head in a value of `width` columns.
  constexpr int head_size(int width) const {
    return says_head_size ? given_head_size : width / heads;
  }
  /// True, or a fault: the heads fit into a value of `width` columns.
  template <class Builder>
  constexpr bool fits(Builder& b, int width) const {
    if (!b.needs_positive(sample_shape(heads, kv_heads)) || !b.needs_positive(given_positions) ||
        (says_head_size && !b.needs_positive(given_head_size)) ||
        (says_rotary && !b.needs_positive(rotary_base)))
      return false;
    if (!says_head_size && width % heads != 0)
      b.report(wrong::heads_do_not_divide_the_width, sample_shape(width));
    else if (heads % kv_heads != 0)
      b.report(wrong::key_value_heads_do_not_divide_the_heads, sample_shape(kv_heads));
    else if (says_rotary && head_size(width) % 2 != 0)
      b.report(wrong::rotary_embedding_needs_an_even_head_size, sample_shape(head_size(width)));
    else if (epsilon > 0 && head_size(width) < 2)
      b.report(wrong::layer_needs_two_channels, sample_shape(head_size(width)));
    return b.ok();
  }
};
template <class O>
constexpr void join(attention_settings&, O) {
}  // Init and OutputInit are read elsewhere: see initial_of
constexpr void join(attention_settings& s, NotCausal) { s.causal = false; }
template <int N>
constexpr void join(attention_settings& s, Window<N>) {
  s.scores.window = s.given_positions = N;
}
template <int N>
constexpr void join(attention_settings& s, Prefix<N>) {
  s.scores.prefix = s.given_positions = N;
}
template <class F>
constexpr void join(attention_settings& s, Mask<F>) {
  s.scores.is_masked = true;
}
constexpr void join(attention_settings& s, ALiBi) { s.scores.has_alibi = true; }
template <auto Numerator, int Denominator>
constexpr void join(attention_settings& s, SoftCap<Numerator, Denominator>) {
  using cap = SoftCap<Numerator, Denominator>;
  if constexpr (cap::number.in_range) s.scores.cap = cap::quotient::template value<double>();
}
template <long long Numerator, long long Denominator>
constexpr void join(attention_settings& s, QKNorm<Numerator, Denominator>) {
  if constexpr (Numerator > 0 && Denominator > 0) Epsilon<Numerator, Denominator>::join(s.epsilon);
}
constexpr void join(attention_settings& s, NoBias) { s.has_bias = false; }
template <int K>
constexpr void join(attention_settings& s, KeyValueHeads<K>) {
  s.kv_heads = K;
}
template <int D>
constexpr void join(attention_settings& s, HeadSize<D>) {
  s.says_head_size = true;
  s.given_head_size = D;
}
template <int Base>
constexpr void join(attention_settings& s, RoPE<Base>) {
  s.says_rotary = true;
  s.rotary_base = Base;
}
template <class... Options>
constexpr attention_settings attention_of(int heads) {
  attention_settings s;
  s.heads = s.kv_heads = heads;
  (join(s, Options{}), ...);
  return s;
}

/// The F of the option Mask<F>, or void.
template <class... Options>
struct mask_among {
  using type = void;
};
template <class F, class... Options>
struct mask_among<Mask<F>, Options...> {
  using type = F;
};
template <class O, class... Options>
struct mask_among<O, Options...> : mask_among<Options...> {};

/// RMSNorm of each head of x by itself, all with one scale.
///
/// shape: x (T, heads * d), scale[d] -> (T, heads * d)
template <class Builder>
constexpr handle norm_of_heads(Builder& b, handle const& x, int head_size, double epsilon,
                               char const* scale) {
  handle heads = x;
  heads.form = sample_shape(x.form.rows() * (x.form.columns() / head_size), head_size);
  operand const gamma = b.parameter(1, head_size, {distribution::constant, 1}, false, {scale});
  handle y = x;
  y.at = b.norm(heads, gamma, operand{}, false, epsilon).at;
  return y;
}
/// Queries, keys and values side by side, from one projection, or from three where queries and keys
/// are normalised.
///
/// shape: x (T, C) -> (T, (H + 2 K) * d)
template <class Builder>
constexpr handle projected(Builder& b, attention_settings const& s, handle const& x, int head_size,
                           initial_rules const& start) {
  if (s.epsilon == 0)
    return affine(b, x, (s.heads + 2 * s.kv_heads) * head_size, s.has_bias, start, in_projection);
  handle const q = affine(b, x, s.heads * head_size, s.has_bias, start, query_projection_alone),
               k = affine(b, x, s.kv_heads * head_size, s.has_bias, start, key_projection_alone),
               v = affine(b, x, s.kv_heads * head_size, s.has_bias, start, value_projection_alone);
  handle const left = norm_of_heads(b, q, head_size, s.epsilon, "q_norm.weight"),
               right = norm_of_heads(b, k, head_size, s.epsilon, "k_norm.weight");
  return b.concat(b.concat(left, right), v);
}

}  // namespace detail

/// y = concat_h(softmax(q_h k_h' / sqrt(d)) v_h) w_o + b_o, where q, k, v = x w_qkv + b_qkv and
/// d = C / Heads.
///
/// shape:  (T, C) -> (T, C); w_qkv[C, (H + 2 K) d], w_o[H d, C]; the T x T scores are never in
///         memory
/// options: Causal (default), NotCausal, Window<N> or Prefix<N>; Mask<F>; ALiBi; SoftCap<c>;
///         NoBias; KeyValueHeads<K> (default: K = Heads); HeadSize<d>; QKNorm<>; RoPE<>;
///         Init<...>, OutputInit<...>
/// order:  scores are scaled, capped, lowered by ALiBi, then masked
/// law:    trailing positions whose token id is -1 are not attended to
/// needs:   C a multiple of Heads unless HeadSize is given, Heads a multiple of K, at least two
///          positions; with RoPE an even d
/// cost:    forward 4 T C (H + K) d + 4 T^2 H d FLOPs per sample, of whose second part Causal skips
///          half
template <int Heads, class... Options>
struct Attention {
  using options = detail::layers<Options...>;
  static constexpr auto takes = detail::option_kinds(
      detail::option_kind::mask, detail::option_kind::visibility,
      detail::option_kind::position_bias, detail::option_kind::cap, detail::option_kind::bias,
      detail::option_kind::key_value_heads, detail::option_kind::head_size,
      detail::option_kind::head_norm, detail::option_kind::rotation, detail::option_kind::initial,
      detail::option_kind::output_initial);
  static constexpr detail::attention_settings settings = detail::attention_of<Options...>(Heads);
  using mask = typename detail::mask_among<Options...>::type;

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    sample_shape const form = b.current().form;
    if (!settings.fits(b, form.columns()) || !b.needs_two_positions(b.current())) return;
    int const head_size = settings.head_size(form.columns());
    detail::initial_rules const start = detail::initial_of<Options...>(b.scope().initial);
    detail::handle const qkv = detail::projected(b, settings, b.current(), head_size, start);
    b.may_cut(qkv);
    detail::operand rotation{};
    if (settings.says_rotary)
      rotation = b.rotary_table(form.rows(), head_size, static_cast<float>(settings.rotary_base));
    detail::attention_attributes const with{Heads, settings.kv_heads, 0, settings.causal,
                                            settings.scores};
    detail::handle const mixed = b.attention(qkv, with, rotation);
    b.may_cut(mixed);
    b.set(detail::affine(
        b, mixed, form.columns(), settings.has_bias, detail::initial_output_of<Options...>(start),
        settings.epsilon > 0 ? detail::out_projection_alone : detail::out_projection));
  }
};

}  // namespace pp
