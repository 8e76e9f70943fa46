// SPDX-License-Identifier: BSL-1.0
//
// Losses of narrow layers in their backward kernel give the bits of launches on the device.
#include "cuda/device_laws.hpp"

using namespace pp;

namespace {

struct Classes : Model<Input<24>, Linear<32>, ReLU, Linear<7>, CrossEntropy> {};
struct Squares : Model<Input<24>, Linear<32>, GELUTanh, Linear<10>, MSE> {};

template <class M, class Precision>
void gives_the_bits_of_launches() {
  using trainer = Pipeline<M, Cuda, Precision, SGD, MicroBatches<2>, MicroBatchSize<150>>;
  using without = Pipeline<M, on_device::CudaWithoutChains, Precision, SGD, MicroBatches<2>,
                           MicroBatchSize<150>>;
  static_assert(trainer::compiled::chain_kernels()[1].recomputed == 3);  // two layers and the loss
  trainer fused({.seed = 3});
  without apart({.seed = 3});
  laws::sample_batch<trainer> const data(1);
  for (int step = 0; step < 2; ++step) {
    auto const x = fused.step(data.view()), y = apart.step(data.view());
    CHECK(laws::same_bits(x.loss, y.loss));
    CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
  }
  CHECK(laws::same_numbers(laws::snapshot(fused).values, laws::snapshot(apart).values));
}

}  // namespace

TEST_CASE("narrow losses in backward give the bits of launches on the device", "[gpu]") {
  gives_the_bits_of_launches<Classes, BF16>();
  gives_the_bits_of_launches<Classes, FP32>();
  gives_the_bits_of_launches<Squares, FP16>();
  gives_the_bits_of_launches<Squares, FP32>();
}
