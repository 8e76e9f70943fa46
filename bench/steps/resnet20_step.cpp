// SPDX-License-Identifier: BSL-1.0
//
// A residual network for images of 32 x 32: He et al., 2016, section 4.2.
#include "../../examples/models/resnet.hpp"
#include "program.hpp"

using namespace pp;

template <int C>
using Further =
    models::Stack<3, models::Projected<models::Basic<C, 2>, C, 2>, models::Plain<models::Basic<C>>>;
struct Network : Model<Input<32, 32, 3>, models::ConvNorm<16, 3>, ReLU,
                       Repeat<3, models::Plain<models::Basic<16>>>, Further<32>, Further<64>,
                       MeanPool, Linear<10>, CrossEntropy> {};

template <class... Options>
auto with(std::string const& folder) {
  return bench::recipe{folder}.with<Network, Options...>();
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::string const folder = arguments[1];
  return bench::answer(
      {{"stages_1", with<MicroBatches<1>, MicroBatchSize<32>>(folder)},
       {"threads_2", with<MicroBatches<1>, MicroBatchSize<32>, HostThreads<2>>(folder)},
       {"threads_2_bf16",
        with<MicroBatches<1>, MicroBatchSize<32>, HostThreads<2>, BF16>(folder)}});
}
