// SPDX-License-Identifier: BSL-1.0
//
// Every layer of the library and an MLP on a GPU.
#include "cuda/device_laws.hpp"
#include "laws/every_layer.hpp"

using namespace pp;

namespace {

struct Mlp : Model<Input<20>, Linear<64>, GELU, Linear<64>, GELU, Linear<10>, CrossEntropy> {};

}  // namespace

TEST_CASE("losses of every layer equal the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::EveryLayer, Stages<3>>();
}
TEST_CASE("twenty losses of an MLP equal the host's", "[gpu]") { on_device::losses_equal_the_hosts<Mlp, Stages<2>>(); }
