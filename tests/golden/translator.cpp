// SPDX-License-Identifier: BSL-1.0
//
// An encoder and a decoder learn as in PyTorch, on one stage and on three: sources and targets of
// different lengths, shared key heads, RoPE, gated units, and a head that is the table of the
// target's words.
#include "golden/training.hpp"

using namespace pp;

namespace {

/// That of translator() in write_golden.py.
struct Translator : Model<Tokens<29, 10>, Embedding<24>, SinusoidalPositions,
                          Repeat<2, Residual<LayerNorm, Attention<2, NotCausal>>,
                                 Residual<LayerNorm, Linear<48>, GELU, Linear<24>>>,
                          LayerNorm, Stash<"memory">, Named<"target", Tokens<23, 8>>,
                          Named<"words", Embedding<24>>, Positions,
                          Repeat<2, Residual<RMSNorm, Attention<3, RoPE<>>>,
                                 Residual<RMSNorm, CrossAttention<3, "memory", KeyValueHeads<1>>>,
                                 Residual<RMSNorm, Linear<64>, SwiGLU, Linear<24>>>,
                          LayerNorm, Tied<"words">, CrossEntropy> {};

template <class... More>
using Trainer =
    Pipeline<Translator, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("an encoder and a decoder learn as in PyTorch", "[golden]") {
  golden::record const theirs("translator", "translator");
  golden::check_gradients_of<Trainer<>>(theirs);
  golden::course const one = golden::train<Trainer<>>(theirs),
                       three = golden::train<Trainer<Stages<3>>>(theirs);
  golden::check_course(one, theirs);
  CHECK(one.losses == three.losses);
  CHECK(one.norms == three.norms);
}
