// SPDX-License-Identifier: BSL-1.0
//
// Every kernel of small models, threads being threads, under ThreadSanitizer: a barrier that is
// missing is a race. And the bits are those of one thread after the other.
#include "races/races.hpp"

using namespace pp;
using races::has_no_races;

namespace {

struct Transformer
    : Model<Tokens<37, 6>, Named<"table", Embedding<24>>, Positions, Dropout<1, 10>,
            Residual<LayerNorm, Attention<2>>, Residual<RMSNorm, Linear<40>, GELUTanh, Linear<24>>,
            LayerNorm, Tied<"table">, CrossEntropy> {};
struct Turned
    : Model<Tokens<37, 9>, Embedding<32>, Residual<RMSNorm, Attention<4, RoPE<>, KeyValueHeads<2>>>,
            Linear<37>, CrossEntropy> {};
struct Rows : Model<Input<5, 20>, Linear<36>, SwiGLU, Stash<"x">, Softmax, Linear<18>, Tanh,
                    Pop<"x">, Linear<7>, MSE> {};
/// One kernel forward and two backward; a tile of rows and a part of one.
struct Narrow : Model<Input<24>, Linear<40>, ReLU, Linear<40>, GELUTanh, Linear<10>, MSE> {};
/// Rows that a whole block works on, and a weight's gradient that is cut into splits.
struct Large
    : Model<Input<3, 700>, LayerNorm, Linear<12>, ReLU, Linear<300>, RMSNorm, Softmax, MSE> {};

}  // namespace

TEST_CASE("kernels of a transformer have no races", "[races]") {
  has_no_races<Pipeline<Transformer, on_host::Device, FP32, AdamW, MicroBatchSize<2>>>();
  has_no_races<Pipeline<Turned, on_host::Device, BF16, SGD, MicroBatchSize<2>>>();
}
TEST_CASE("kernels of narrow layers have no races", "[races]") {
  has_no_races<Pipeline<Narrow, on_host::Device, FP32, SGD, MicroBatchSize<70>>>();
  has_no_races<Pipeline<Narrow, on_host::Device, BF16, SGD, MicroBatchSize<150>>>();
}
TEST_CASE("kernels of rows have no races", "[races]") {
  has_no_races<Pipeline<Rows, on_host::Device, FP32, SGD, MicroBatchSize<3>>>();
  has_no_races<Pipeline<Large, on_host::Device, BF16, SGD, MicroBatchSize<5>>>();
}
