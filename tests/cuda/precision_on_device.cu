// SPDX-License-Identifier: BSL-1.0
//
// Training on a GPU in values of 16 bits: the bits of one stage, and losses near the host's.
#include "cuda/device_laws.hpp"
#include "laws/everything.hpp"

using namespace pp;

TEST_CASE("16-bit values have the bits of one stage on the device", "[gpu]") {
  using one = on_device::trainer<laws::Everything, Cuda, BF16>;
  using many = on_device::trainer<laws::Everything, Cuda, BF16, Stages<4>, ZeroBubbleH1>;
  laws::train_alike_from_the_start<one, many>(7, 3, 3);
}
TEST_CASE("losses in 16 bits are near the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::Everything, BF16, Stages<4>, ZeroBubbleH1>(1e-2);
  on_device::losses_equal_the_hosts<laws::Everything, FP16, Stages<4>, ZeroBubbleH1>(1e-2);
}
