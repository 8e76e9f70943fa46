// SPDX-License-Identifier: BSL-1.0
//
// Our half of gpt_step.py: the example GPT under several pipelines. Argument: the folder with the
// mini-batches.
#include "peer/program.hpp"

using namespace pp;

using Block =
    Seq<Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<384>, GELUTanh, Linear<96>>>;
struct GPT : Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<8, Block>, LayerNorm,
                   Linear<256>, CrossEntropy> {};

template <int Ranks, class... Options>
auto with(std::string const& folder) {
  using Trainer =
      Pipeline<GPT, Stages<Ranks>, MicroBatches<8>, MicroBatchSize<2>, AdamW, Options...>;
  return bench::entry<Trainer>(
      folder,
      {.seed = 1, .optimizer = {.learning_rate = 1e-3}, .clip_norm = 1, .runtime = {.pin = true}});
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  bench::answer({{"stages_1", with<1>(folder)},
                 {"threads_2", with<1, HostThreads<2>>(folder)},
                 {"stages_2", with<2>(folder)},
                 {"stages_4", with<4>(folder)},
                 {"stages_4_gpipe", with<4, GPipe>(folder)}});
}
