// SPDX-License-Identifier: BSL-1.0
//
// The laws for attention with the options of its scores, in an encoder and a decoder with padding:
// windows, prefixes, masks of a user, ALiBi, caps, normalised heads; and for limits on logits.
#include <catch2/catch.hpp>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

/// Hides every third distance, and with it from some queries all that is there.
struct Gaps {
  PIPE_HD static constexpr bool visible(int q, int k) { return (q - k) % 3 != 0; }
};

struct Scores
    : Model<Tokens<11, 6>, Embedding<8>,
            Residual<LayerNorm, Attention<4, Window<3>, ALiBi, KeyValueHeads<2>, HeadSize<3>>>,
            Residual<Attention<2, NotCausal, Mask<Gaps>, SoftCap<1, 2>, RoPE<>>>, LayerNorm,
            Stash<"memory">, Named<"target", Tokens<9, 5>>, Embedding<6>,
            Residual<Attention<2, QKNorm<>, KeyValueHeads<1>, HeadSize<4>, Prefix<2>, RoPE<>>>,
            Residual<CrossAttention<3, "memory", Mask<Gaps>, SoftCap<1>>>, Linear<7>, SoftCap<3, 2>,
            ClipLogits<9, 10>, CrossEntropy> {
  static constexpr bool pads = true;
};

/// A vision Transformer.
struct Vision
    : Model<Input<6, 4, 3>, Tanh, PatchEmbedding<8, 2>, ClassToken, Positions,
            Residual<LayerNorm, Attention<2, NotCausal>>, FirstPosition, Linear<5>, CrossEntropy> {
};
static_assert(Vision::graph.size.units >= 5);

/// Numbers of patches are those of a convolution with stride 2 over an image that counts upwards.
bool patches_are_those_of_a_convolution() {
  float x[4 * 4 * 2], y[4 * 4 * 2];
  for (int i = 0; i < 32; ++i) x[i] = float(i);  // row h, column w, channel c: 8 h + 2 w + c
  custom_forward<float> a;
  a.samples = 1;
  a.in = shape(4, 4, 2);
  a.x = x, a.y = y;
  detail::patches<2>::forward(a);
  bool same = true;
  for (int patch = 0; patch < 4; ++patch)
    for (int c = 0; c < 2; ++c)
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          same = same && y[patch * 8 + c * 4 + i * 2 + j] ==
                             float(8 * (patch / 2 * 2 + i) + 2 * (patch % 2 * 2 + j) + c);
  return same;
}

}  // namespace

TEST_CASE("patches and a class token obey the laws", "[laws]") {
  CHECK(patches_are_those_of_a_convolution());
  laws::gradients_are_differences<Vision>(2);
  using one = Pipeline<Vision, PortableHost, SGD, MicroBatches<3>, MicroBatchSize<2>>;
  using cut = Pipeline<Vision, PortableHost, SGD, MicroBatches<3>, MicroBatchSize<2>, Stages<4>,
                       laws::LateWeights, RecomputeAll>;
  laws::same_as_one_stage<one, cut>(3);
}
TEST_CASE("attention whose scores have rules obeys the laws", "[laws]") {
  laws::gradients_are_differences<Scores>(1);
  using one = Pipeline<Scores, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>>;
  using again = Pipeline<Scores, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>, GPipe,
                         Stages<2>, RecomputeAll, HostThreads<2>>;
  using apart = Pipeline<Scores, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>, Stages<5>,
                         laws::LateWeights>;
  laws::same_as_one_stage<one, again>(3);
  laws::same_as_one_stage<one, apart>(4);
}
