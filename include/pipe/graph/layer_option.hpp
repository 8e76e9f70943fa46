// SPDX-License-Identifier: BSL-1.0
//
// The options of layers: `Linear<4, NoBias>`. A layer with options lists them in `options` and the
// kinds that it accepts in `takes`. The builder compares the two, so every layer refuses an option
// in the same way, without code of its own.
#pragma once

#include <pipe/graph/layers.hpp>

namespace pp::detail {

/// The subject of an option, its member `option`. A layer takes at most one option of each kind,
/// unless the option has a member `repeats`.
enum class option_kind : unsigned char {
  none,  ///< no option at all
  bias,
  initial,
  output_initial,
  mask,
  key_value_heads,
  head_size,
  visibility,
  position_bias,
  cap,
  head_norm,
  rotation,
  smoothing,
  z,
  join,
  learning_rate,
  weight_decay,
  epsilon,
  momentum,
  variance,
  affine,
  response_scale,
  response_power,
  response_offset,
  reduction,
  weights,
  target,
  class_weights,
  positive_weight,
  stride,
  padding,
  dilation,
  groups,
  output_padding,
  ceiling,
  real_cells,
  corners,
  alpha,
  negative_slope,
  symmetry,
  per_channel,
  padding_index,
  samples
};

/// A set of kinds as a bit mask; `none` is in no set.
template <class... Kinds>
constexpr unsigned long long option_kinds(Kinds... kinds) {
  return (0ull | ... | (1ull << unsigned(kinds)));
}

/// The member `number` of an option that has a number: the number as a quotient, and whether it is
/// in the option's range.
struct option_number {
  bool in_range = true;
  int numerator = 0, denominator = 1;
  bool of_integers = true;
};

/// The kind of option O; none for a type that is not an option.
template <class O>
constexpr option_kind kind_of() {
  if constexpr (requires { O::option; })
    return O::option;
  else
    return option_kind::none;
}
/// The number of option O; for an option without a number, a number that is in range.
template <class O>
constexpr option_number number_of() {
  if constexpr (requires { O::number; })
    return O::number;
  else
    return option_number{};
}

/// The index of the first option of a kind; -1 if there is none.
template <option_kind Kind, class... Options>
constexpr int index_of_option() {
  bool const is[] = {kind_of<Options>() == Kind..., true};
  int i = 0;
  while (!is[i]) ++i;
  return i < int(sizeof...(Options)) ? i : -1;
}
/// The first option of a kind; Default if there is none.
template <option_kind Kind, class Default, class... Options>
using option_or = leaf_at<index_of_option<Kind, Options...>() + 1, layers<Default, Options...>>;
/// The same, with void if there is none.
template <option_kind Kind, class... Options>
using option_of = option_or<Kind, void, Options...>;

/// Whether a layer may have several options of O's kind.
template <class O>
constexpr bool can_be_repeated() {
  return requires { O::repeats; };
}
/// Whether the functions of option O are constexpr. An option with user-defined functions says so
/// in `is_constexpr`.
template <class O>
constexpr bool runs_while_compiling() {
  if constexpr (requires { O::is_constexpr; })
    return O::is_constexpr;
  else
    return true;
}

/// The first option that a layer refuses, and why; `at` is -1 if it refuses none. unknown: not in
/// L::takes; twice: the second of its kind; varying: with a function that is not constexpr. If all
/// three are false, `number` is out of range.
struct refused_option {
  int at = -1;
  bool unknown = false, twice = false, varying = false;
  option_number number{};
};

/// The first of the options O that layer L refuses: for a kind that L does not take, as the second
/// of its kind, for a function that is not constexpr, or for a number out of range.
/// needs: L has `takes`
template <class L, class... O>
constexpr refused_option find_refused(layers<O...>) {
  option_kind const kinds[] = {kind_of<O>()..., option_kind::none};
  bool const repeats[] = {can_be_repeated<O>()..., false},
             runs[] = {runs_while_compiling<O>()..., true};
  option_number const numbers[] = {number_of<O>()..., option_number{}};
  for (int i = 0; i < int(sizeof...(O)); ++i) {
    bool const taken = (L::takes & option_kinds(kinds[i])) != 0;
    bool twice = false;
    for (int k = 0; k < i; ++k) twice = twice || (kinds[k] == kinds[i] && !repeats[i]);
    if (!taken || twice || !runs[i] || !numbers[i].in_range)
      return refused_option{i, !taken, twice, !runs[i], numbers[i]};
  }
  return refused_option{};
}
/// The first of its own options that layer L refuses.
template <class L>
constexpr refused_option refused_by() {
  if constexpr (requires { L::takes; })
    return find_refused<L>(typename L::options{});
  else
    return refused_option{};
}
/// Whether layer L refuses one of its options.
template <class L>
inline constexpr bool refuses_an_option = refused_by<L>().at >= 0;

}  // namespace pp::detail
