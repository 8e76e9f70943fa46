// SPDX-License-Identifier: BSL-1.0
//
// The laws for attention in all its forms: shared key heads, rotary positions, keys and values of
// another sequence, padding; and for tables that are not trained.
#include "catch.hpp"

#include "laws/attention_models.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;
using namespace laws::attention;

namespace {

struct Turned
    : Model<Tokens<11, 5>, Embedding<8>,
            Residual<RMSNorm, Attention<2, RoPE<>, HeadSize<6>, NoBias>>,
            Attention<4, RoPE<100>, KeyValueHeads<2>, NotCausal>, Linear<11>, CrossEntropy> {};
struct Waves : Model<Input<4, 7>, SinusoidalPositions, Tanh, Linear<6>, SinusoidalPositions,
                     Attention<2>, Linear<3>, SinusoidalPositions, MSE> {};
struct Shares
    : Model<Input<4, 6>, Named<"block", Seq<Attention<1, RoPE<>>, SinusoidalPositions, Linear<6>>>,
            Tanh, Tied<"block">, MSE> {};

/// Attends to half as many positions of twice the width, made of the same value, as another layer
/// would to another value.
template <int Heads, int KeyHeads>
struct AttendsToHalf {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    detail::handle const x = b.current();
    detail::handle pairs = x;
    pairs.form = sample_shape(x.form.rows() / 2, 2 * x.form.columns());
    pairs.padding = detail::operand{};
    int const width = x.form.columns(), key_width = 2 * width / Heads * KeyHeads;
    detail::handle const q = affine(b, x, width, true, {}),
                         kv = affine(b, pairs, key_width, true, {});
    b.set(affine(b, b.cross_attention(q, kv, Heads, KeyHeads), width, true, {}));
  }
};
struct Crosses : Model<Input<6, 4>, Linear<8>, Tanh, Residual<AttendsToHalf<4, 2>>, Linear<6>,
                       AttendsToHalf<2, 2>, LayerNorm, MSE> {};

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
