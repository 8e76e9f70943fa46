// SPDX-License-Identifier: BSL-1.0
//
// Models with attention in all its forms: shared key heads, keys and values of another sequence,
// padding.
#pragma once

#include <pipe/pipe.hpp>

namespace laws::attention {

using namespace pp;

struct Grouped
    : Model<Tokens<11, 5>, Embedding<8>, Residual<LayerNorm, Attention<4, KeyValueHeads<2>>>,
            Linear<6>, Attention<3, KeyValueHeads<1>, HeadSize<5>, NotCausal, NoBias>, Linear<11>,
            CrossEntropy> {};

/// Keys and values are the stashed value itself, or the input itself; queries need no gradient
/// where they are an input.
template <Text Key, int Heads>
struct AttendsTo {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.set(b.cross_attention(b.current(), b.recall(Key.view()), Heads, Heads));
  }
};
struct Translates
    : Model<Tokens<9, 4>, Embedding<6>, Residual<Attention<2, NotCausal>>, LayerNorm, Linear<12>,
            Stash<"memory">, Named<"target", Tokens<8, 3>>, Embedding<6>,
            Residual<LayerNorm, Attention<3, RoPE<>>>, LayerNorm, Residual<AttendsTo<"memory", 2>>,
            Tanh, Linear<6>, Residual<AttendsTo<"memory", 1>>, Linear<8>, CrossEntropy> {
  static constexpr bool pads = true;
};
/// Only one of the two operands needs a gradient.
struct FixedKeys : Model<Named<"keys", Input<5, 8>>, Stash<"keys">, Named<"x", Input<3, 2>>,
                         Linear<4>, AttendsTo<"keys", 2>, Linear<2>, MSE> {};
struct FixedQueries : Model<Named<"x", Input<5, 2>>, Linear<8>, Stash<"keys">,
                            Named<"queries", Input<3, 4>>, AttendsTo<"keys", 2>, Linear<2>, MSE> {};

struct Padded : Model<Tokens<11, 6>, Embedding<6>, Residual<LayerNorm, Attention<2, NotCausal>>,
                      Attention<3, RoPE<>, KeyValueHeads<1>>, Linear<11>, CrossEntropy> {
  static constexpr bool pads = true;
};

}  // namespace laws::attention
