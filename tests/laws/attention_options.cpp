// SPDX-License-Identifier: BSL-1.0
//
// The laws for attention with the options of its scores, in an encoder and a decoder with padding:
// windows, prefixes, masks of a user, ALiBi, caps, normalised heads; and for limits on logits.
#include "catch.hpp"

#include "laws/images.hpp"
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

using laws::Vision;
static_assert(Vision::graph.size.units >= 5);

/// The patches of an image by themselves, with and without a bias.
template <class... Patches>
struct Mean : Model<Input<6, 4, 3>, Patches..., MeanPool, Linear<5>, CrossEntropy> {};

/// Whether two models have the same ops but for the layers that add them.
template <class A, class B>
constexpr bool have_the_same_ops() {
  bool same = A::graph.size.ops == B::graph.size.ops;
  for (int i = 0; same && i < A::graph.size.ops; ++i) {
    detail::op const a = A::graph.ops[i], b = B::graph.ops[i];
    same = a.kind == b.kind && a.in[0] == b.in[0] && a.in[1] == b.in[1] && a.rows == b.rows &&
           a.columns == b.columns && a.attributes == b.attributes;
  }
  return same;
}
static_assert(have_the_same_ops<Mean<PatchEmbedding<8, 2>>,
                                Mean<Conv2d<8, 2, Stride<2>>, Reshape<Rest, 8>>>() &&
              have_the_same_ops<Mean<PatchEmbedding<8, 1, NoBias>>,
                                Mean<Conv2d<8, 1, NoBias>, Reshape<Rest, 8>>>());

}  // namespace

TEST_CASE("patches, a class token and several losses obey the laws", "[laws]") {
  laws::gradients_are_differences<Vision>(2);
  using one = Pipeline<Vision, PortableHost, SGD, MicroBatches<3>, MicroBatchSize<2>>;
  using cut = Pipeline<Vision, PortableHost, SGD, MicroBatches<3>, MicroBatchSize<2>, Stages<4>,
                       laws::LateWeights, RecomputeAll>;
  laws::same_as_one_stage<one, cut>(3);
}
TEST_CASE("attention whose scores have rules obeys the laws", "[laws]") {
  laws::gradients_are_differences<Scores>(1);
  using one = Pipeline<Scores, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>>;
  using cut = Pipeline<Scores, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>, Stages<5>,
                       laws::LateWeights, RecomputeAll, HostThreads<2>>;
  laws::same_as_one_stage<one, cut>(4);
}
