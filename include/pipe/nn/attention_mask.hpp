// SPDX-License-Identifier: BSL-1.0
//
// Options of attentions: which keys a query sees, and how the scores of those fall with their
// distance.
#pragma once

#include <concepts>

#include <pipe/graph/layer_option.hpp>

namespace pp {

/// Every position attends to itself and the positions before it (default).
struct Causal {
  static constexpr auto option = detail::option_kind::mask;
};
/// Every position attends to all positions.
struct NotCausal {
  static constexpr auto option = detail::option_kind::mask;
};
/// Every position attends to itself and the N - 1 positions before it. Blocks of scores outside are
/// not computed. With N at least the number of positions this is Causal.
///
/// source: Beltagy, Peters, Cohan, Longformer, 2020; N counts as in Mistral
template <int N>
struct Window {
  static constexpr auto option = detail::option_kind::mask;
};
/// The first N positions attend to each other, all later ones to themselves and those before them:
/// a language model that reads its prompt in both directions.
///
/// source: Raffel et al., T5, 2020, section 3.2.1, "causal with prefix"
template <int N>
struct Prefix {
  static constexpr auto option = detail::option_kind::mask;
};
/// Hides keys from queries by a user-defined function, beside what the other mask hides (Causal
/// unless another is given): the query at position q sees key k only if F::visible(q, k). Blocks of
/// scores that are hidden as a whole are not computed.
///
/// needs: `static constexpr bool visible(int q, int k)`, marked PIPE_HD for GPUs
/// law:   a query that sees no key gives zeros
template <class F>
struct Mask {
  static constexpr bool complete = requires {
    { F::visible(0, 0) } -> std::same_as<bool>;
  };
  static constexpr auto option =
      complete ? detail::option_kind::visibility : detail::option_kind::none;
};
/// Attention with linear biases: the score of a key at distance n falls by n times a slope of the
/// head, 2^(-8 h / H) for h = 1 to H. No other positions are needed.
///
/// source: Press, Smith, Lewis, Train short, test long, 2022
struct ALiBi {
  static constexpr auto option = detail::option_kind::position_bias;
};

}  // namespace pp
