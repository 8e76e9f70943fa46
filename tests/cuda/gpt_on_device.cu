// SPDX-License-Identifier: BSL-1.0
//
// A GPT on a GPU, whole and on several ranks: a schedule of each kind, since on_device.cu has all
// of them.
#include "cuda/device_laws.hpp"

using namespace pp;

namespace {

/// The example's, smaller.
using Block =
    Seq<Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<96>, GELUTanh, Linear<24>>>;
struct Gpt : Model<Tokens<61, 33>, Embedding<24>, Positions, Repeat<3, Block>, LayerNorm,
                   Linear<61>, CrossEntropy> {};

}  // namespace

TEST_CASE("losses of a GPT equal the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<Gpt, Stages<4>>();
}

TEST_CASE("a GPT on two and on four ranks has the bits of one", "[gpu]") {
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<2>, OneFOneB>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, GPipe>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, ZeroBubbleH2>();
}
TEST_CASE("a GPT in four chunks on two ranks has the bits of one stage", "[gpu]") {
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, Interleaved<2>>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, DualPipeV>();
}
