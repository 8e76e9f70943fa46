// SPDX-License-Identifier: BSL-1.0
//
// The laws for attention in all its forms: shared key heads, rotary positions, keys and values of another sequence, padding;
// and for tables that are not trained.
#include <catch2/catch.hpp>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

struct Grouped : Model<Tokens<11, 5>, Embedding<8>, Residual<LayerNorm, Attention<4, KeyValueHeads<2>>>, Linear<6>,
                       Attention<3, KeyValueHeads<1>, NotCausal, NoBias>, Linear<11>, CrossEntropy> {};
struct Turned : Model<Tokens<11, 5>, Embedding<8>, Residual<RMSNorm, Attention<2, RoPE<>, NoBias>>,
                      Attention<4, RoPE<100>, KeyValueHeads<2>, NotCausal>, Linear<11>, CrossEntropy> {};
struct Waves : Model<Input<4, 7>, SinusoidalPositions, Tanh, Linear<6>, SinusoidalPositions, Attention<2>, Linear<3>,
                     SinusoidalPositions, MSE> {};
struct Shares : Model<Input<4, 6>, Named<"block", Seq<Attention<1, RoPE<>>, SinusoidalPositions, Linear<6>>>, Tanh,
                      Tied<"block">, MSE> {};

/// Attends to half as many positions of twice the width, made of the same value, as another layer would to another value.
template <int Heads, int KeyHeads>
struct AttendsToHalf {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    handle const x = b.current();
    handle pairs = x;
    pairs.form = shape(x.form.rows() / 2, 2 * x.form.columns());
    pairs.padding = operand{};
    int const width = x.form.columns(), key_width = 2 * width / Heads * KeyHeads;
    handle const q = affine(b, x, width, true, {}), kv = affine(b, pairs, key_width, true, {});
    b.set(affine(b, b.cross_attention(q, kv, Heads, KeyHeads), width, true, {}));
  }
};
struct Crosses : Model<Input<6, 4>, Linear<8>, Tanh, Residual<AttendsToHalf<4, 2>>, Linear<6>, AttendsToHalf<2, 2>,
                       LayerNorm, MSE> {};

/// Keys and values are the stashed value itself, or the input itself; queries need no gradient where they are an input.
template <text Key, int Heads>
struct AttendsTo {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.set(b.cross_attention(b.current(), b.recall(Key.view()), Heads, Heads));
  }
};
struct Translates : Model<Tokens<9, 4>, Embedding<6>, Residual<Attention<2, NotCausal>>, LayerNorm, Linear<12>,
                          Stash<"memory">, Named<"target", Tokens<8, 3>>, Embedding<6>,
                          Residual<LayerNorm, Attention<3, RoPE<>>>, LayerNorm, Residual<AttendsTo<"memory", 2>>, Tanh,
                          Linear<6>, Residual<AttendsTo<"memory", 1>>, Linear<8>, CrossEntropy> {
  static constexpr bool pads = true;
};
/// Only one of the two operands needs a gradient.
struct FixedKeys : Model<Named<"keys", Input<5, 8>>, Stash<"keys">, Named<"x", Input<3, 2>>, Linear<4>,
                         AttendsTo<"keys", 2>, Linear<2>, MSE> {};
struct FixedQueries : Model<Named<"x", Input<5, 2>>, Linear<8>, Stash<"keys">, Named<"queries", Input<3, 4>>,
                            AttendsTo<"keys", 2>, Linear<2>, MSE> {};

struct Padded : Model<Tokens<11, 6>, Embedding<6>, Residual<LayerNorm, Attention<2, NotCausal>>,
                      Attention<3, RoPE<>, KeyValueHeads<1>>, Linear<11>, CrossEntropy> {
  static constexpr bool pads = true;
};

}  // namespace

TEST_CASE("heads that share keys and values obey the laws", "[laws]") { laws::obeys<Grouped>(1); }
TEST_CASE("rotary positions obey the laws", "[laws]") { laws::obeys<Turned>(2); }
TEST_CASE("positions that are not trained obey the laws", "[laws]") {
  laws::obeys<Waves>(3);
  laws::obeys<Shares>(4);
}
TEST_CASE("attention to another value obeys the laws", "[laws]") {
  laws::obeys<Crosses>(5);
  laws::obeys<Translates>(6);
  laws::obeys<FixedKeys>(8);
  laws::obeys<FixedQueries>(9);
}
TEST_CASE("padding obeys the laws", "[laws]") { laws::obeys<Padded>(7); }
