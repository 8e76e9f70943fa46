// SPDX-License-Identifier: BSL-1.0
//
// ResNet-18 on eight images.
#include "../../examples/models/resnet.hpp"
#include "program.hpp"

using namespace pp;

template <class... Options>
auto with(std::string const& folder) {
  return bench::recipe{folder}
      .with<models::ResNet18, MicroBatches<1>, MicroBatchSize<8>, Options...>();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  return bench::answer(
      {{"threads_1", with<>(folder)}, {"threads_2", with<HostThreads<2>>(folder)}});
}
