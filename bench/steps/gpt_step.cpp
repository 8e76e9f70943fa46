// SPDX-License-Identifier: BSL-1.0
//
// The example GPT under several pipelines.
#include "networks.hpp"
#include "program.hpp"

using namespace pp;

template <int Ranks, class... Options>
auto with(std::string const& folder) {
  return bench::recipe{folder, 1e-3, 1}
      .with<bench::GPT<96, 3, 8, 128>, Stages<Ranks>, MicroBatches<8>, MicroBatchSize<2>,
            Options...>();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  return bench::answer({{"stages_1", with<1>(folder)},
                        {"threads_2", with<1, HostThreads<2>>(folder)},
                        {"stages_2", with<2>(folder)},
                        {"stages_4", with<4>(folder)},
                        {"stages_4_gpipe", with<4, GPipe>(folder)}});
}
