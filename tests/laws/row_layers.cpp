// SPDX-License-Identifier: BSL-1.0
//
// The laws for the layers that work along rows without parameters: Softmax.
#include <catch2/catch.hpp>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

struct Soft : Model<Input<2, 3>, Linear<9>, Softmax, LayerNorm, Linear<17>, Tanh, Softmax, LayerNorm,
                    Residual<Sigmoid, Softmax>, Linear<4>, Flatten, Softmax, MSE> {};
struct SoftOnInput : Model<Input<2, 19>, Softmax, Positions, Softmax, Linear<3>, CrossEntropy> {};
/// Widths above and below the vectors of every instruction set.
struct SoftWide : Model<Input<67>, Softmax, Linear<33>, Tanh, Softmax, SiLU, Softmax, Linear<5>, Softmax, MSE> {};

}  // namespace

TEST_CASE("Softmax obeys the laws", "[laws]") {
  laws::obeys<Soft>(1);
  laws::obeys<SoftOnInput>(2);
  laws::cuts_keep_the_bits_everywhere<SoftWide>(3);
}
