// SPDX-License-Identifier: BSL-1.0
//
// A GPT of two blocks as wide as GPT-2's.
#include "networks.hpp"
#include "program.hpp"

using namespace pp;

template <class... Options>
auto with(std::string const& folder) {
  return bench::recipe{folder, 1e-3, 1}
      .with<bench::GPT<768, 12, 2, 512>, MicroBatches<4>, MicroBatchSize<1>, Options...>();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  return bench::answer({{"stages_1", with<>(folder)},
                        {"threads_2", with<HostThreads<2>>(folder)},
                        {"stages_2", with<Stages<2>>(folder)}});
}
