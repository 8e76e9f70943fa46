// SPDX-License-Identifier: BSL-1.0
//
// Multi-head self-attention with its two projections.
#pragma once

#include <concepts>

#include <pipe/nn/linear.hpp>

namespace pp {

/// Every position attends to itself and the positions before it (default).
struct Causal {
  static constexpr auto option = detail::option_kind::mask;
};
/// Every position attends to all positions.
struct NotCausal {
  static constexpr auto option = detail::option_kind::mask;
};
/// Grouped-query attention (Ainslie et al., 2023): K heads of keys and values, each shared by
/// Heads / K heads of queries.
template <int K>
struct KeyValueHeads {
  static constexpr auto option = detail::option_kind::key_value_heads;
};
/// Rotary position embedding (Su et al., 2021): rotates queries and keys by angles proportional to
/// their positions, so that scores depend on distances. The two halves of a head are paired, as in
/// Hugging Face's Llama.
template <int Base = 10000>
struct RoPE {
  static constexpr auto option = detail::option_kind::rotation;
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

/// The settings of an attention, from its options. kv_heads: as many as heads unless an option says
/// otherwise.
struct attention_settings {
  int kv_heads = 0, rotary_base = 0;
  bool says_rotary = false, causal = true, has_bias = true;
};
template <class O>
constexpr void join(attention_settings&, O) {
}  // Init and OutputInit are read elsewhere: see initial_of
constexpr void join(attention_settings& s, NotCausal) { s.causal = false; }
constexpr void join(attention_settings& s, NoBias) { s.has_bias = false; }
template <int K>
constexpr void join(attention_settings& s, KeyValueHeads<K>) {
  s.kv_heads = K;
}
template <int Base>
constexpr void join(attention_settings& s, RoPE<Base>) {
  s.says_rotary = true;
  s.rotary_base = Base;
}
template <class... Options>
constexpr attention_settings attention_of(int heads) {
  attention_settings s;
  s.kv_heads = heads;
  (join(s, Options{}), ...);
  return s;
}

}  // namespace detail

/// y = concat_h(softmax(q_h k_h' / sqrt(d)) v_h) w_o + b_o, where q, k, v = x w_qkv + b_qkv and
/// d = C / Heads.
///
/// shape:  (T, C) -> (T, C); w_qkv[C, C + 2 K d], w_o[C, C]; the T x T scores are never in memory
/// options: Causal (default) or NotCausal; NoBias; KeyValueHeads<K> (default: K = Heads); RoPE<>;
///         Init<...>, OutputInit<...>
/// law:    trailing positions whose token id is -1 are not attended to
/// needs:   C a multiple of Heads, Heads a multiple of K, at least two positions; with RoPE an even
///          C / Heads
/// cost:    forward 4 T C (C + K d) + 4 T^2 C FLOPs per sample, of whose second part Causal skips
///          half
template <int Heads, class... Options>
struct Attention {
  using options = detail::layers<Options...>;
  static constexpr unsigned takes =
      detail::option_kinds(detail::option_kind::mask, detail::option_kind::bias,
                           detail::option_kind::key_value_heads, detail::option_kind::rotation,
                           detail::option_kind::initial, detail::option_kind::output_initial);
  static constexpr detail::attention_settings settings = detail::attention_of<Options...>(Heads);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !fits(b)) return;
    shape const form = b.current().form;
    int const head_size = form.columns() / Heads;
    detail::initial_rules const start = detail::initial_of<Options...>(b.scope().initial);
    detail::handle const qkv =
        detail::affine(b, b.current(), form.columns() + 2 * settings.kv_heads * head_size,
                       settings.has_bias, start, detail::in_projection);
    detail::operand rotation{};
    if (settings.says_rotary)
      rotation = b.rotary_table(form.rows(), head_size, static_cast<float>(settings.rotary_base));
    b.set(detail::affine(b, b.attention(qkv, Heads, settings.kv_heads, settings.causal, rotation),
                         form.columns(), settings.has_bias,
                         detail::initial_output_of<Options...>(start), detail::out_projection));
  }

 private:
  template <class Builder>
  static constexpr bool fits(Builder& b) {
    int const width = b.current().form.columns();
    if (!b.needs_positive(Heads) || !b.needs_positive(settings.kv_heads)) return false;
    if (settings.says_rotary && !b.needs_positive(settings.rotary_base)) return false;
    if (width % Heads != 0)
      b.report(detail::fault_kind::heads_do_not_divide, shape(Heads), shape(width));
    else if (Heads % settings.kv_heads != 0)
      b.report(detail::fault_kind::key_value_heads_do_not_divide, shape(Heads),
               shape(settings.kv_heads));
    else if (settings.says_rotary && width / Heads % 2 != 0)
      b.report(detail::fault_kind::rotary_head_is_odd, shape{}, shape(width / Heads));
    return b.needs_two_positions(b.current());
  }
};

}  // namespace pp
