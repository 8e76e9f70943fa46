// SPDX-License-Identifier: BSL-1.0
//
// Lengths where a position has several rows, those of its heads, or rows are cut into columns:
// attentions with QKNorm, and reversible blocks.
#include "laws/lengths_law.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 24;

struct Heads
    : Model<Tokens<words, context>, Embedding<16>,
            Residual<LayerNorm, Attention<4, QKNorm<>, KeyValueHeads<2>, HeadSize<6>, RoPE<>>>,
            Residual<Attention<2, QKNorm<>, Prefix<9>>>, Linear<words>, CrossEntropy> {};

using F = Seq<LayerNorm, Attention<2>>;
using G = Seq<RMSNorm, Linear<20>, GELUTanh, Dropout<1, 10>, Linear<8>>;
struct Undone : Model<Tokens<words, context>, Embedding<16>, Positions, Reversible<F, G>, Tanh,
                      Repeat<2, Reversible<G, F>>, LayerNorm, Linear<words>, CrossEntropy> {};

template <class M, class... Options>
void check() {
  using One = Pipeline<M, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<3>>;
  using Several =
      Pipeline<M, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<3>, Lengths<>, Options...>;
  laws::keeps_bits_of_padding<One, Several>({9, 24, 1, 0, 8, 17});
}

}  // namespace

TEST_CASE("lengths keep the bits of padding: norms of heads", "[laws]") {
  check<Heads, Stages<3>, HostThreads<2>>();
  check<Heads, Stages<2>, RecomputeAll>();
}
TEST_CASE("lengths keep the bits of padding: reversible blocks", "[laws]") {
  check<Undone, Stages<3>>();
}
