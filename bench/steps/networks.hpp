// SPDX-License-Identifier: BSL-1.0
//
// Networks of several sizes.
#pragma once

#include <pipe/pipe.hpp>

#include "program.hpp"

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

/// The same with mini-batches of 256, which are cut into micro-batches for two stages only.
template <int Width>
contenders ways_of_mlp(recipe const& r) {
  using M = MLP<Width>;
  return {
      {"stages_1", r.with<M, MicroBatches<1>, MicroBatchSize<256>>()},
      {"threads_2", r.with<M, MicroBatches<1>, MicroBatchSize<256>, HostThreads<2>>()},
      {"threads_2_bf16", r.with<M, MicroBatches<1>, MicroBatchSize<256>, HostThreads<2>, BF16>()},
      {"stages_2", r.with<M, MicroBatches<4>, MicroBatchSize<64>, Stages<2>>()}};
}

}  // namespace bench
