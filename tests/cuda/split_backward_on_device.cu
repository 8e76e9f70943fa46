// SPDX-License-Identifier: BSL-1.0
//
// Schedules with B and W apart on a GPU: the bits of one stage, as on_device.cu demands of the others.
#include "cuda/device_laws.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

template <class Schedule>
void gives_the_bits_of_one_stage() {
  on_device::gives_the_bits_of_one_stage<laws::Everything, Schedule, Stages<4>>();
}

}  // namespace

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
