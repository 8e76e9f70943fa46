// SPDX-License-Identifier: BSL-1.0
//
// Four blocks of a small LLaMA: RMSNorm, grouped heads with rotary positions, SwiGLU.
#include "../../examples/models/transformers.hpp"
#include "program.hpp"

using namespace pp;

using Network = models::Llama<4, 256, 704, 8, 2, 256, 10000, Linear<256, NoBias>, 256>;

template <class... Options>
auto with(std::string const& folder) {
  return bench::recipe{folder, 1e-3, 1}
      .with<Network, MicroBatches<4>, MicroBatchSize<2>, Options...>();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  return bench::answer({{"stages_1", with<>(folder)},
                        {"threads_2", with<HostThreads<2>>(folder)},
                        {"stages_2", with<Stages<2>>(folder)}});
}
