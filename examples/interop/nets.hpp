// SPDX-License-Identifier: BSL-1.0
//
// Two nets that check.py has in PyTorch too, and what they learn: made up, endless, and a function
// of the step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pipe/pipe.hpp>

// [nets]
struct Mlp : pp::Model<pp::Input<4>, pp::Linear<32>, pp::GELUTanh, pp::Linear<32>, pp::Tanh,
                       pp::Linear<4>, pp::CrossEntropy> {};

using Block = pp::Seq<pp::Residual<pp::LayerNorm, pp::Attention<3>>,
                      pp::Residual<pp::LayerNorm, pp::Linear<48>, pp::GELUTanh, pp::Linear<24>>>;
struct Gpt : pp::Model<pp::Tokens<16, 12>, pp::Named<"tokens", pp::Embedding<24>>, pp::Positions,
                       pp::Repeat<2, Block>, pp::LayerNorm, pp::Tied<"tokens">, pp::CrossEntropy> {
};
// [/nets]

template <class M>
using Trainer =
    pp::Pipeline<M, pp::Stages<2>, pp::MicroBatches<4>, pp::MicroBatchSize<16>, pp::AdamW>;

template <class M>
struct samples {
  std::vector<typename Trainer<M>::input_type> inputs;
  std::vector<int> labels;
};

inline std::uint32_t random_bits(std::uint64_t step, int sample, int which) {
  return pp::math::random_block(7, step, std::uint64_t(sample)).word[which];
}

/// In which quarter of two planes a point lies. Adds a mini-batch, as the function below.
inline void draw(std::uint64_t step, samples<Mlp>& s) {
  for (int i = 0; i < Trainer<Mlp>::samples; ++i) {
    float x[4];
    for (int k = 0; k < 4; ++k)
      s.inputs.push_back(x[k] = 2 * pp::math::unit_uniform(random_bits(step, i, k)) - 1);
    s.labels.push_back(2 * (x[0] * x[1] > 0) + (x[2] * x[3] > 0));
  }
}

/// What comes next in a sequence that grows by the same number, modulo 16. After two tokens that is
/// certain.
inline void draw(std::uint64_t step, samples<Gpt>& s) {
  for (int i = 0; i < Trainer<Gpt>::samples; ++i) {
    std::uint32_t const first = random_bits(step, i, 0), difference = random_bits(step, i, 1);
    for (std::uint32_t t = 0; t < std::uint32_t(Trainer<Gpt>::inputs_per_sample); ++t) {
      s.inputs.push_back(int((first + t * difference) % 16));
      s.labels.push_back(int((first + (t + 1) * difference) % 16));
    }
  }
}
