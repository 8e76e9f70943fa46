// SPDX-License-Identifier: BSL-1.0
//
// The loss of narrow layers as part of their backward kernel, where the schedule allows it: a
// training step has no forward launches then, and all bits are those of separate kernels.
#include "device/device.hpp"
#include "laws/data.hpp"

using namespace pp;

namespace {

struct Squares : Model<Input<24>, Linear<40>, ReLU, Linear<40>, GELU, Linear<10>, MSE> {};

template <class Trainer>
using last_programs = typename Trainer::compiled::passes::template programs<
    Trainer::compiled::stages - 1, Trainer::compiled::some_drop,
    typename Trainer::compiled::work::chains>;
template <class Trainer>
constexpr bool has_loss_in_backward = last_programs<Trainer>::has_loss_in_backward;

}  // namespace

TEST_CASE("a narrow loss in backward gives the bits of launches", "[cuda]") {
  using trainer = Pipeline<Squares, on_host::Device, BF16, MicroBatches<2>, MicroBatchSize<70>>;
  using without =
      Pipeline<Squares, on_host::DeviceWithoutChains, BF16, MicroBatches<2>, MicroBatchSize<70>>;
  STATIC_REQUIRE(has_loss_in_backward<trainer>);
  trainer together({.seed = 3});
  without apart({.seed = 3});
  laws::sample_batch<trainer> const data(1);
  for (int step = 0; step < 2; ++step) {
    auto const a = together.step(data.view()), b = apart.step(data.view());
    CHECK(laws::same_bits(a.loss, b.loss));
  }
  CHECK(laws::same_numbers(laws::snapshot(together).gradients, laws::snapshot(apart).gradients));
  CHECK(laws::same_numbers(laws::snapshot(together).values, laws::snapshot(apart).values));
}
