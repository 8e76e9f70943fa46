// SPDX-License-Identifier: BSL-1.0
//
// Attention to another sequence, which joins an encoder and a decoder into one model.
#pragma once

#include <pipe/base/text.hpp>
#include <pipe/nn/attention.hpp>

namespace pp {

namespace detail {

/// The names of the projections of queries, and of keys and values.
inline constexpr affine_names query_projection{
    "q_proj_weight",          "q_proj_bias",          "base_layer.q_proj_weight",
    "base_layer.q_proj_bias", "q_proj.lora_A.weight", "q_proj.lora_B.weight"};
inline constexpr affine_names memory_projection{
    "kv_proj_weight",          "kv_proj_bias",          "base_layer.kv_proj_weight",
    "base_layer.kv_proj_bias", "kv_proj.lora_A.weight", "kv_proj.lora_B.weight"};

}  // namespace detail

/// Attention whose keys and values are projections of a stashed value: every position attends to
/// all positions of that sequence.
///
/// shape:  (T, C) and stashed (S, D) -> (T, C); w_q[C, H d], w_kv[D, 2 K d], w_o[H d, C],
///         d = C / Heads
/// options: Mask<F>; SoftCap<c>; NoBias; KeyValueHeads<K> (default: K = Heads); HeadSize<d>;
///         Init<...>, OutputInit<...>
/// law:    trailing positions of the stashed sequence whose token id is -1 are not attended to
/// needs:   C a multiple of Heads unless HeadSize is given, Heads a multiple of K, at least two
///          stashed positions
/// cost:    forward 4 T C H d + 4 S D K d + 4 T S H d FLOPs per sample
template <int Heads, Text Memory, class... Options>
struct CrossAttention {
  static constexpr Text key = Memory;
  using options = detail::layers<Options...>;
  static constexpr auto takes = detail::option_kinds(
      detail::option_kind::visibility, detail::option_kind::cap, detail::option_kind::bias,
      detail::option_kind::key_value_heads, detail::option_kind::head_size,
      detail::option_kind::initial, detail::option_kind::output_initial);
  using mask = typename detail::mask_among<Options...>::type;
  static constexpr detail::attention_settings settings = detail::attention_of<Options...>(Heads);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle const x = b.current(), memory = b.recall(Memory.view());
    if (!b.ok()) return;
    int const width = x.form.columns();
    if (memory.is_ids)
      return b.report(wrong::layer_needs_real_numbers_but_gets_token_ids, memory.form);
    if (!settings.fits(b, width) || !b.needs_two_positions(memory)) return;
    int const head_size = settings.head_size(width);
    detail::initial_rules const start = detail::initial_of<Options...>(b.scope().initial);
    detail::handle const q =
        detail::affine(b, x, Heads * head_size, settings.has_bias, start, detail::query_projection);
    detail::handle const kv = detail::affine(b, memory, 2 * settings.kv_heads * head_size,
                                             settings.has_bias, start, detail::memory_projection);
    b.may_cut(kv);
    detail::handle const mixed =
        b.cross_attention(q, kv, Heads, settings.kv_heads, settings.scores);
    b.may_cut(mixed);
    b.set(detail::affine(b, mixed, width, settings.has_bias,
                         detail::initial_output_of<Options...>(start), detail::out_projection));
  }
};

}  // namespace pp
