// SPDX-License-Identifier: BSL-1.0
//
// Reversible blocks, LoRA, patches with a class token and attention with rules for its scores over
// processes: the bits of one stage, under schedules of several kinds.
#include "mpi/alike.hpp"

#include <pipe/schedule/catalog/families.hpp>

#include "laws/overlap_law.hpp"

using namespace pp;

namespace {

/// Hides every third distance.
struct Gaps {
  PIPE_HD static constexpr bool visible(int q, int k) { return (q - k) % 3 != 0; }
};

/// Words for an image: an encoder of patches, and a decoder.
struct Captions
    : Model<Input<6, 4, 3>, PatchEmbedding<8, 2>, ClassToken, Positions,
            LoRA<Repeat<2, Residual<LayerNorm, Attention<2, Mask<Gaps>, SoftCap<1, 2>>>>, 2,
                 Alpha<3>>,
            Reversible<Seq<LayerNorm, Attention<2, Window<3>>>,
                       Seq<Linear<6>, GELUTanh, Dropout<1, 10>, Linear<4>>>,
            LoRA<Reversible<Linear<4>, Attention<1, NotCausal>>, 1>, Stash<"patches">,
            FirstPosition, Stash<"class">, Named<"words", Tokens<9, 5>>, Embedding<6>,
            Residual<Attention<2, Window<3>, ALiBi, KeyValueHeads<1>, HeadSize<4>>>,
            LoRA<Residual<CrossAttention<3, "patches", SoftCap<1>>>, 2>,
            Residual<LayerNorm, Attention<3, QKNorm<>, RoPE<>, Prefix<2>>>,
            LoRA<Seq<Linear<9>, GELUTanh>, 3>, Linear<7>, SoftCap<3, 2>,
            Losses<CrossEntropy,
                   FurtherLoss<"kind", "class", LossWeight<1, 4>, Linear<3>, CrossEntropy>>> {
  static constexpr bool pads = true;
};

template <class... More>
using Of = Pipeline<Captions, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("adapted and reversible layers over processes have the bits of one stage", "[any]") {
  if (Between::processes() > 4) return;
  processes::trains_alike<Of<>, Of<Between, ZeroBubbleV, Stages<8>, RecomputeAll>>();
}
TEST_CASE("steps with adapted and reversible layers overlap over processes", "[any]") {
  if (Between::processes() > 4) return;
  using Many = Of<Between, Steady<Interleaved<2>>, Stages<8>>;
  laws::mini_batches<Of<>> const data(5);
  for (double const clip : {0., 1.}) {
    Of<> one({.seed = 3, .clip_norm = clip});
    Many many({.seed = 3, .clip_norm = clip});
    laws::history a, b;
    a.train(one, data.views());
    b.train(many, data.views<Many>());
    CHECK(a.numbers.size() == 10);
    CHECK(a.numbers == b.numbers);
    CHECK(processes::same_parameters(one, many));
  }
}
