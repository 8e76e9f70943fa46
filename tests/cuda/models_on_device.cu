// SPDX-License-Identifier: BSL-1.0
//
// Every layer and every loss of the library, an MLP and a GPT on a GPU. That they compile and link without a warning, for every
// architecture that the build names, is a test wherever nvcc is; what they compute is one wherever a GPU is.
#include "cuda/device_laws.hpp"
#include "laws/every_layer.hpp"

using namespace pp;

namespace {

struct Mlp : Model<Input<20>, Linear<64>, GELU, Linear<64>, GELU, Linear<10>, CrossEntropy> {};

/// The example's, smaller.
using Block = Seq<Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<96>, GELU, Linear<24>>>;
struct Gpt : Model<Tokens<61, 33>, Embedding<24>, Positions, Repeat<3, Block>, LayerNorm, Linear<61>, CrossEntropy> {};

}  // namespace

TEST_CASE("losses of every layer equal the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::EveryLayer, Stages<3>>();
}
TEST_CASE("every loss equals the host's", "[gpu]") {
  on_device::losses_equal_the_hosts<laws::EveryLoss<MSE>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<BCE>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<Huber<1, 2>>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<laws::LogCosh>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<CrossEntropy>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<laws::Surprise>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryPool<MeanPool>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryPool<FirstPosition>>(1e-4, 5);
  on_device::losses_equal_the_hosts<laws::EveryLoss<laws::UnequalClasses>>(1e-4, 5);
}
TEST_CASE("twenty losses of an MLP equal the host's", "[gpu]") { on_device::losses_equal_the_hosts<Mlp, Stages<2>>(); }
TEST_CASE("twenty losses of a GPT equal the host's", "[gpu]") { on_device::losses_equal_the_hosts<Gpt, Stages<4>>(); }

TEST_CASE("a GPT on two and on four ranks has the bits of one", "[gpu]") {
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<2>, GPipe>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<2>, OneFOneB>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<2>, ZeroBubbleH1>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, GPipe>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, OneFOneB>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, EagerOneFOneB>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, ZeroBubbleH1>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, ZeroBubbleH2>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, ZeroBubble1P>();
}
TEST_CASE("a GPT in four chunks on two ranks has the bits of one stage", "[gpu]") {
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, Interleaved<2>>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, LoopedBFS<2>>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, ZeroBubbleV>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, VHalf>();
  on_device::gives_the_bits_of_one_stage<Gpt, Stages<4>, DualPipeV>();
}
