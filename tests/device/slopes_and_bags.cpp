// SPDX-License-Identifier: BSL-1.0
//
// Trained slopes and bags of ids through CUDA kernel bodies: the host's numbers in 32 and 16 bits,
// in chains of narrow layers too, and the bits of one stage whatever the cuts.
#include "cuda/agreement.hpp"
#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/every_layer.hpp"

using namespace pp;

namespace {

using Bag = laws::EveryBag<PaddingIndex<3>>;
/// Slopes of pixels' channels, behind a convolution and on their own.
struct Pictures : Model<Input<4, 5, 3>, PReLU, Conv2d<6, 3>, With<PReLU, PerChannel>, BatchNorm,
                        PReLU, MeanPool, Linear<4>, CrossEntropy> {};
/// Layers that run as one kernel, at widths with and without wide accesses.
struct Narrow : Model<Input<24>, Linear<40>, PReLU, Linear<33, NoBias>, With<PReLU, PerChannel>,
                      Linear<12>, PReLU, Linear<10>, MSE> {};

template <class M, class Precision, class... More>
using Trained =
    Pipeline<M, on_host::Device, Precision, AdamW, MicroBatches<4>, MicroBatchSize<3>, More...>;

/// Loss and gradients of a partial mini-batch, from the same weights.
template <class M, class Precision>
void is_near_the_host(double tolerance) {
  using host = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<3>>;
  using device = Trained<M, Precision>;
  host expected({.seed = 5});
  device found({.seed = 5});
  laws::disturb(expected, 3, 0.3);
  laws::copy_parameters(expected, found);
  laws::sample_batch<host> const data(1);
  auto const a = expected.gradients(data.view(host::samples - 2));
  auto b = found.gradients(data.template view<device>(host::samples - 2));
  while (b.skipped) b = found.gradients(data.template view<device>(host::samples - 2));
  CHECK(b.loss == Approx(a.loss).epsilon(tolerance));
  CHECK(on_host::difference(laws::snapshot(expected).gradients, laws::snapshot(found).gradients) <
        2 * tolerance);
}

}  // namespace

TEST_CASE("bags of ids and trained slopes agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<Bag, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<laws::EveryBag<Reduction<Sum>>, MicroBatches<2>, MicroBatchSize<3>,
                                Stages<2>>();
  on_host::agrees_with_the_host<Pictures, MicroBatches<2>, MicroBatchSize<3>>();
  is_near_the_host<Bag, BF16>(5e-2);
  is_near_the_host<Bag, FP16>(1e-2);
}
TEST_CASE("cuts and recomputation keep the bits of slopes and bags in 16 bits", "[cuda]") {
  laws::train_alike_from_the_start<Trained<Bag, BF16>, Trained<Bag, BF16, Stages<4>, ZeroBubbleH1>>(
      7, 2);
  laws::train_alike_from_the_start<Trained<Narrow, FP16>,
                                   Trained<Narrow, FP16, Stages<3>, RecomputeAll>>(8, 2);
}
TEST_CASE("narrow layers with trained slopes give the bits of their launches", "[cuda]") {
  using trainer = Pipeline<Narrow, on_host::Device, BF16, MicroBatches<2>, MicroBatchSize<70>>;
  using without =
      Pipeline<Narrow, on_host::DeviceWithoutChains, BF16, MicroBatches<2>, MicroBatchSize<70>>;
  STATIC_REQUIRE(trainer::compiled::chain_kernels().count > 0);
  STATIC_REQUIRE(without::compiled::chain_kernels().count == 0);
  laws::train_alike_from_the_start<without, trainer>(9, 2);
  on_host::agrees_with_the_host<Narrow, MicroBatches<2>, MicroBatchSize<9>>();
}
