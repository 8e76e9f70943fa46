// SPDX-License-Identifier: BSL-1.0
//
// Two steps of a small model with everything and of a chain of narrow layers, for
// compute-sanitizer: it runs programs some hundred times slower.
#include <vector>

#include <pipe/pipe.hpp>

#include "measure.cuh"

using namespace pp;

namespace {

struct Small : Model<Tokens<61, 12>, Named<"table", Embedding<40>>, Positions, Dropout<1, 10>,
                     Stash<"begin">,
                     Repeat<2, Residual<LayerNorm, Attention<2>>,
                            Residual<RMSNorm, Linear<72>, GELUTanh, Linear<40>>>,
                     Pop<"begin">, LayerNorm, Tied<"table">, CrossEntropy> {};
using Trainer =
    Pipeline<Small, Stages<2>, MicroBatches<2>, MicroBatchSize<3>, ZeroBubbleH1, AdamW, Cuda>;

struct Narrow
    : Model<Input<24>, Linear<64>, ReLU, Linear<64>, GELUTanh, Linear<40>, Tanh, Linear<10>, MSE> {
};
using NarrowTrainer = Pipeline<Narrow, MicroBatches<2>, MicroBatchSize<700>, AdamW, Cuda>;

}  // namespace

int main() {
  return bench::run("small", [] {
    Trainer trainer({.clip_norm = 1});
    std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(i * 7 % 61);
    for (int step = 0; step < 2; ++step)
      std::printf("loss %.6f\n", trainer.step({tokens, tokens}).loss);
    std::printf("loss %.6f\n", trainer.evaluate({tokens, tokens}));
    NarrowTrainer narrow;
    std::vector<float> const x(
        std::size_t(NarrowTrainer::samples * NarrowTrainer::inputs_per_sample), 0.5f),
        y(std::size_t(NarrowTrainer::samples * NarrowTrainer::outputs_per_sample), 1.0f);
    for (int step = 0; step < 2; ++step) std::printf("loss %.6f\n", narrow.step({x, y}).loss);
  });
}
