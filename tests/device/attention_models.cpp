// SPDX-License-Identifier: BSL-1.0
//
// Models with attention in all its forms through the CUDA kernel bodies.
#include "cuda/agreement.hpp"

using namespace pp;

namespace {

struct Grouped : Model<Tokens<11, 5>, Embedding<8>, Residual<LayerNorm, Attention<4, KeyValueHeads<2>>>, Linear<6>,
                       Attention<3, KeyValueHeads<1>, NotCausal, NoBias>, Linear<11>, CrossEntropy> {};
struct Turned : Model<Tokens<11, 19>, Embedding<32>, Residual<RMSNorm, Attention<2, RoPE<>, NoBias>>,
                      Attention<8, RoPE<100>, KeyValueHeads<2>, NotCausal>, Linear<11>, CrossEntropy> {};

/// Keys and values are another value itself, or the input itself; queries need no gradient where they are an input.
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
struct FixedKeys : Model<Named<"keys", Input<5, 8>>, Stash<"keys">, Named<"x", Input<3, 2>>, Linear<4>,
                         AttendsTo<"keys", 2>, Linear<2>, MSE> {};
struct FixedQueries : Model<Named<"x", Input<5, 2>>, Linear<8>, Stash<"keys">, Named<"queries", Input<3, 4>>,
                            AttendsTo<"keys", 2>, Linear<2>, MSE> {};
struct Padded : Model<Tokens<11, 6>, Embedding<6>, Residual<LayerNorm, Attention<2, NotCausal>>,
                      Attention<3, RoPE<>, KeyValueHeads<1>>, Linear<11>, CrossEntropy> {
  static constexpr bool pads = true;
};

}  // namespace

TEST_CASE("models with attention agree with the host on CUDA", "[cuda]") {
  on_host::agrees_with_the_host<Grouped, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Turned, MicroBatches<2>, MicroBatchSize<2>, Stages<2>>();
}
TEST_CASE("models with attention to other values agree with the host on CUDA", "[cuda]") {
  on_host::agrees_with_the_host<Translates, MicroBatches<2>, MicroBatchSize<2>>();
  on_host::agrees_with_the_host<FixedKeys, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<FixedQueries, MicroBatches<2>, MicroBatchSize<3>>();
}
TEST_CASE("models with padding agree with the host on CUDA", "[cuda]") {
  on_host::agrees_with_the_host<Padded, MicroBatches<2>, MicroBatchSize<3>>();
}
