// SPDX-License-Identifier: BSL-1.0
//
// Our half of mlp_step.py. Argument: the folder with the mini-batches.
#include "peer/program.hpp"

using namespace pp;

struct MLP : Model<Input<784>, Linear<512>, ReLU, Linear<512>, ReLU, Linear<10>, CrossEntropy> {};

template <int Ranks, class... Options>
auto with(std::string const& folder) {
  using Trainer =
      Pipeline<MLP, Stages<Ranks>, MicroBatches<4>, MicroBatchSize<16>, AdamW, Options...>;
  return bench::entry<Trainer>(
      folder, {.seed = 1, .optimizer = {.learning_rate = 1e-4}, .runtime = {.pin = true}});
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  bench::answer({{"stages_1", with<1>(folder)},
                 {"threads_2", with<1, HostThreads<2>>(folder)},
                 {"stages_2", with<2>(folder)}});
}
