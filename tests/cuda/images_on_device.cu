// SPDX-License-Identifier: BSL-1.0
//
// Convolutions, and norms over pixels and over samples, on a GPU.
#include "cuda/device_laws.hpp"
#include "laws/images.hpp"
#include "laws/sync_over.hpp"

using namespace pp;

TEST_CASE("losses of a model of images equal the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::Images, Stages<2>>(1e-4, 3);
}
TEST_CASE("losses of batch norms over groups of samples equal the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::Normed<SyncOver<1>>, Stages<2>>(1e-4, 3);
}
TEST_CASE("the sum of the losses of a vision Transformer is the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::Vision, Stages<2>>(1e-4, 3);
}
