// SPDX-License-Identifier: BSL-1.0
//
// Our half of resnet18_step.py. Argument: the folder with the mini-batches.
#include "../examples/models/resnet.hpp"
#include "peer/program.hpp"

using namespace pp;

template <class... Options>
auto with(std::string const& folder) {
  using Trainer = Pipeline<models::ResNet18, MicroBatches<1>, MicroBatchSize<8>, AdamW, Options...>;
  return bench::entry<Trainer>(
      folder, {.seed = 1, .optimizer = {.learning_rate = 1e-4}, .runtime = {.pin = true}});
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  bench::answer({{"threads_1", with<>(folder)}, {"threads_2", with<HostThreads<2>>(folder)}});
}
