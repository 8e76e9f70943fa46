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

}  // namespace

TEST_CASE("attention whose scores have rules obeys the laws", "[laws]") { laws::obeys<Scores>(1); }
