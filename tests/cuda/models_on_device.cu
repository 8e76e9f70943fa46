// SPDX-License-Identifier: BSL-1.0
//
// Every layer of the library, an MLP, and narrow layers as one kernel on a GPU.
#include "cuda/device_laws.hpp"
#include "laws/every_layer.hpp"

using namespace pp;

namespace {

struct Mlp
    : Model<Input<20>, Linear<64>, GELUTanh, Linear<64>, GELUTanh, Linear<10>, CrossEntropy> {};
struct Narrow
    : Model<Input<24>, Linear<64>, ReLU, Linear<64>, GELUTanh, Linear<40>, Tanh, Linear<10>, MSE> {
};

}  // namespace

TEST_CASE("losses of every layer equal the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::EveryLayer, Stages<3>>();
}
TEST_CASE("losses of an MLP equal the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<Mlp, Stages<2>>();
}
TEST_CASE("narrow layers as one kernel give the bits of their launches on the device", "[gpu]") {
  using trainer = Pipeline<Narrow, Cuda, MicroBatches<3>, MicroBatchSize<1300>>;
  trainer fused;
  Pipeline<Narrow, on_device::CudaWithoutChains, MicroBatches<3>, MicroBatchSize<1300>> apart;
  laws::sample_batch<trainer> const data(1);
  auto const x = fused.gradients(data.view()), y = apart.gradients(data.view());
  CHECK(laws::same_bits(x.loss, y.loss));
  CHECK(laws::same_numbers(laws::snapshot(fused).gradients, laws::snapshot(apart).gradients));
  laws::train_alike_from_the_start<
      trainer,
      Pipeline<Narrow, Cuda, MicroBatches<3>, MicroBatchSize<1300>, Stages<2>, ZeroBubbleH1>>(7, 2,
                                                                                              3);
}
