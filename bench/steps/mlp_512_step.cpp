// SPDX-License-Identifier: BSL-1.0
//
// A network of width 512 with mini-batches of 256.
#include "networks.hpp"
#include "program.hpp"

using namespace pp;

template <class... Options>
auto with(std::string const& folder) {
  return bench::recipe{folder}.with<bench::MLP<512>, Options...>();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  return bench::answer(
      {{"stages_1", with<MicroBatches<1>, MicroBatchSize<256>>(folder)},
       {"threads_2", with<MicroBatches<1>, MicroBatchSize<256>, HostThreads<2>>(folder)},
       {"stages_2", with<MicroBatches<4>, MicroBatchSize<64>, Stages<2>>(folder)}});
}
