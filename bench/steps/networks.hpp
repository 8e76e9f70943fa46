// SPDX-License-Identifier: BSL-1.0
//
// Networks of several sizes.
#pragma once

#include <pipe/pipe.hpp>

namespace bench {

using namespace pp;

/// As in examples/gpt: bytes as tokens.
template <int Width, int Heads, int Blocks, int Context>
struct GPT : Model<Tokens<256, Context>, Embedding<Width>, Positions,
                   Repeat<Blocks, Residual<LayerNorm, Attention<Heads>>,
                          Residual<LayerNorm, Linear<4 * Width>, GELUTanh, Linear<Width>>>,
                   LayerNorm, Linear<256>, CrossEntropy> {};

template <int Width>
struct MLP : Model<Input<784>, Linear<Width>, ReLU, Linear<Width>, ReLU, Linear<10>, CrossEntropy> {
};

}  // namespace bench
