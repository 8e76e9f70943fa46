// SPDX-License-Identifier: BSL-1.0
//
// Lengths: layers and options that change what is computed of a position, and kernels that are
// divided among threads, keep the bits of padding.
#include "catch.hpp"

#include <algorithm>
#include <vector>

#include "laws/eager.hpp"
#include "laws/lengths_law.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 24;

using Reads = Residual<LayerNorm, Attention<2, KeyValueHeads<1>, HeadSize<6>, RoPE<>>>;
using Thinks = Residual<LayerNorm, Linear<9>, GELUTanh, Dropout<1, 10>, Linear<8>>;
struct Adapted : Model<Tokens<words, context>, Embedding<8>, LoRA<Repeat<2, Reads, Thinks>, 2>,
                       LayerNorm, LoRA<Linear<words>, 1>, CrossEntropy> {};

/// Hides every third distance.
struct Gaps {
  PIPE_HD static constexpr bool visible(int query, int key) { return (query - key) % 3 != 1; }
};
struct Ruled : Model<Tokens<words, context>, Embedding<12>, Positions,
                     Residual<LayerNorm, Attention<2, Prefix<3>, SoftCap<1, 2>>>,
                     Residual<LayerNorm, Attention<3, Mask<Gaps>>>, PReLU, Linear<words>,
                     With<CrossEntropy, LabelSmoothing<1, 10>, ZLoss<1, 100>>> {};

/// Every kernel that is divided among threads.
struct Wide
    : Model<Tokens<words, 128>, Embedding<256>, Positions, Residual<LayerNorm, Attention<4>>,
            Residual<RMSNorm, Linear<512>, SwiGLU, Linear<256>>, Linear<words>, CrossEntropy> {};

template <class M, class... Options>
using trainer_of = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, Options...>;
/// Every kernel in parts, however small it is.
template <class M, class... Options>
using divided = Pipeline<M, laws::Eager<PortableHost>, AdamW, MicroBatches<4>, MicroBatchSize<2>,
                         Lengths<>, Options...>;

std::vector<int> const lengths{1, 24, 8, 7, 9, 16, 0, 23};

}  // namespace

TEST_CASE("lengths keep the bits of padding: LoRA", "[laws]") {
  laws::keeps_bits_of_padding<trainer_of<Adapted>, divided<Adapted, Stages<2>, HostThreads<3>>>(
      lengths);
}
TEST_CASE("lengths keep the bits of padding: prefixes, masks, caps, smoothed labels", "[laws]") {
  laws::keeps_bits_of_padding<trainer_of<Ruled>, divided<Ruled, Stages<2>, HostThreads<2>>>(
      lengths);
}
TEST_CASE("lengths keep the bits of padding: parts of threads of wide layers", "[laws]") {
  using One = Pipeline<Wide, Host, MicroBatches<2>, MicroBatchSize<2>>;
  using Two = Pipeline<Wide, Host, MicroBatches<2>, MicroBatchSize<2>, Lengths<>, HostThreads<2>>;
  CHECK(std::ranges::count(Two::compiled::parts, 2) > 10);
  laws::keeps_bits_of_padding<One, Two>({128, 1, 40, 65});
}
