// SPDX-License-Identifier: BSL-1.0
//
// The laws for the layers that work along rows without parameters: Softmax, gated units.
#include "catch.hpp"

#include "laws/every_layer.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

struct Soft : Model<Input<2, 3>, Linear<9>, Softmax, LayerNorm, Linear<17>, Tanh, Softmax,
                    LayerNorm, Residual<Sigmoid, Softmax>, Linear<4>, Flatten, Softmax, MSE> {};
struct SoftOnInput : Model<Input<2, 19>, Softmax, Positions, Softmax, Linear<3>, CrossEntropy> {};
/// Widths above and below the vectors of every instruction set.
struct SoftWide
    : Model<Input<67>, Softmax, Linear<33>, Tanh, Softmax, SiLU, Softmax, Linear<5>, Softmax, MSE> {
};

struct Cube {  // a user's formula
  static constexpr bool derivative_reads_output = false;
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x * x * x;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    return T(3) * x * x;
  }
};
struct CubeFirst : pp::detail::gated<Cube> {};
struct Gates : Model<Input<2, 3>, Linear<10>, SwiGLU, Linear<18>, LayerNorm, GEGLU,
                     Residual<Linear<18>, GLU, Tanh>, Flatten, CubeFirst, Linear<3>, CrossEntropy> {
};
struct GatesOnInput : Model<Input<2, 22>, SwiGLU, Positions, Linear<8>, GLU, Tanh, MSE> {};
struct GatesWide : Model<Input<5>, Linear<134>, SwiGLU, Linear<66>, Tanh, GEGLU, SiLU, Linear<34>,
                         GLU, Linear<3>, MSE> {};

}  // namespace

TEST_CASE("Softmax obeys the laws", "[laws]") {
  laws::obeys<Soft>(1);
  laws::obeys<SoftOnInput>(2);
  laws::cuts_keep_the_bits_everywhere<SoftWide>(3);
}
TEST_CASE("gated units obey the laws", "[laws]") {
  laws::obeys<Gates>(1);
  laws::obeys<GatesOnInput>(2);
  laws::cuts_keep_the_bits_everywhere<GatesWide>(3);
}
TEST_CASE("pools obey the laws", "[laws]") {
  laws::obeys<laws::EveryPool<MeanPool>>(4);
  laws::gradients_are_differences<laws::EveryPool<FirstPosition>>(5);
  laws::gradients_are_differences<laws::EveryPool<LastPosition>>(6);
}
