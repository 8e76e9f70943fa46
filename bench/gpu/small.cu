// SPDX-License-Identifier: BSL-1.0
//
// Two steps of a small model with everything, for compute-sanitizer: it runs programs some hundred times slower.
#include <cstdio>
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

namespace {

struct Small : Model<Tokens<61, 12>, Named<"table", Embedding<40>>, Positions, Dropout<1, 10>, Stash<"begin">,
                     Repeat<2, Residual<LayerNorm, Attention<2>>, Residual<RMSNorm, Linear<72>, GELU, Linear<40>>>,
                     Pop<"begin">, LayerNorm, Tied<"table">, CrossEntropy> {};
using Trainer = Pipeline<Small, Stages<2>, MicroBatches<2>, MicroBatchSize<3>, ZeroBubbleH1, AdamW, Cuda>;

}  // namespace

int main() {
  try {
    Trainer trainer({.clip_norm = 1});
    std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = int(i * 7 % 61);
    for (int step = 0; step < 2; ++step) std::printf("loss %.6f\n", trainer.step({tokens, tokens}).loss);
    std::printf("loss %.6f\n", trainer.evaluate({tokens, tokens}));
    return 0;
  } catch (error const& e) {
    std::fprintf(stderr, "small: %s\n", e.what());
    return 2;
  }
}
