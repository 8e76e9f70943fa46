// SPDX-License-Identifier: BSL-1.0
//
// Training on a GPU in values of 16 bits: the bits of one stage under every kind of schedule, and the host's losses.
#include "cuda/device_laws.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

template <class Precision, class... More>
void gives_the_bits_of_one_stage() {
  using one = on_device::trainer<laws::Everything, Cuda, Precision>;
  laws::train_alike_from_the_start<one, on_device::trainer<laws::Everything, Cuda, Precision, Stages<4>, More...>>(7, 3,
                                                                                                                   3);
}

}  // namespace

TEST_CASE("16-bit values have the bits of one stage on the device", "[gpu]") {
  gives_the_bits_of_one_stage<BF16, OneFOneB>();
  gives_the_bits_of_one_stage<BF16, ZeroBubbleV, RecomputeAll>();
  gives_the_bits_of_one_stage<FP16, ZeroBubbleH1>();
}
TEST_CASE("losses in other precisions are near the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::Everything, BF16, Stages<4>>(1e-2);
  on_device::losses_equal_the_hosts<laws::Everything, FP16, Stages<4>>(1e-2);
  on_device::losses_equal_the_hosts<laws::Everything, TF32, Stages<4>>(1e-2);
}
