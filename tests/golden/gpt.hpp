// SPDX-License-Identifier: BSL-1.0
//
// The small GPT of gpt() in write_golden.py.
#pragma once

#include "golden/training.hpp"

namespace golden {

struct Gpt
    : pp::Model<
          pp::Tokens<65, 16>, pp::Embedding<32>, pp::Positions,
          pp::Repeat<2, pp::Residual<pp::LayerNorm, pp::Attention<4>>,
                     pp::Residual<pp::LayerNorm, pp::Linear<128>, pp::GELUTanh, pp::Linear<32>>>,
          pp::LayerNorm, pp::Linear<65>, pp::CrossEntropy> {};

template <class... More>
using GptTrainer =
    pp::Pipeline<Gpt, pp::AdamW, pp::MicroBatches<4>, pp::MicroBatchSize<2>, More...>;

}  // namespace golden
