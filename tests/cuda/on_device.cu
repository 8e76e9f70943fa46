// SPDX-License-Identifier: BSL-1.0
//
// Laws of training on a GPU: the same bits under every schedule as in one stage, the same from run
// to run, and losses that agree with the host's from the same weights. Compiled wherever nvcc is;
// run wherever a GPU is.
#include <cmath>

#include "cuda/device_laws.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

/// Under four stages, so that all of them share their kernels.
template <class Schedule, class... More>
void gives_the_bits_of_one_stage() {
  on_device::gives_the_bits_of_one_stage<laws::Everything, Schedule, Stages<4>, More...>();
}

}  // namespace

TEST_CASE("schedules give the bits of one stage on the device", "[gpu]") {
  gives_the_bits_of_one_stage<GPipe>();
  gives_the_bits_of_one_stage<OneFOneB>();
  gives_the_bits_of_one_stage<EagerOneFOneB>();
  gives_the_bits_of_one_stage<Interleaved<2>>();
  gives_the_bits_of_one_stage<GroupedInterleaved<2>>();
  gives_the_bits_of_one_stage<LoopedBFS<2>>();
  gives_the_bits_of_one_stage<Hanayo<1>>();
}
TEST_CASE("schedules with B and W apart give the bits of one stage on the device", "[gpu]") {
  gives_the_bits_of_one_stage<ZeroBubbleH1>();
  gives_the_bits_of_one_stage<ZeroBubbleH2>();
  gives_the_bits_of_one_stage<ZeroBubble1P>();
  gives_the_bits_of_one_stage<ZeroBubble2P>();
  gives_the_bits_of_one_stage<ZeroBubbleV>();
  gives_the_bits_of_one_stage<VHalf>();
  gives_the_bits_of_one_stage<VMin>();
  gives_the_bits_of_one_stage<DualPipeV>();
}
TEST_CASE("recomputation changes no bit on the device", "[gpu]") {
  gives_the_bits_of_one_stage<GPipe, RecomputeAllButLast>();
}

TEST_CASE("losses equal the host's from the same weights", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::Everything, Stages<4>>();
}

TEST_CASE("a step that is not finite is rejected on the device, and nothing has changed", "[gpu]") {
  using trainer = on_device::trainer<laws::Everything, Cuda, Stages<4>>;
  trainer t;
  laws::sample_batch<trainer> const data(1);
  t.step(data.view());
  auto const before = laws::snapshot(t).values;
  auto const parameters = t.parameters();
  float const kept = parameters[0].values[0];
  parameters[0].values[0] = HUGE_VALF;
  t.parameters_changed();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  t.parameters()[0].values[0] = kept;
  t.parameters_changed();
  CHECK(laws::same_numbers(laws::snapshot(t).values, before));
  CHECK(t.steps() == 1);
}
