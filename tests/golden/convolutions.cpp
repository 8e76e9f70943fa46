// SPDX-License-Identifier: BSL-1.0
//
// Convolutions against PyTorch: outputs, loss and all gradients, with weights in PyTorch's order in
// files. The models are those of convolution_cases() in write_golden.py.
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class M>
void check(char const* name) {
  golden::check_in_two<M>("convolutions", name);
}

struct Images
    : Model<Input<7, 6, 4>,  //
            Conv2d<6, Axes<3, 2>, Stride<2>, Padding<1>, Dilation<2>, Groups<2>>,
            ReLU,  // (3, 3, 6)
            ConvTranspose2d<4, 3, Stride<2>, Padding<1>, OutputPadding<1>, Groups<2>>, GELUTanh,
            Conv2d<4, 3, Groups<4>, Stride<2, 1>, Padding<1>>, Tanh,  // (3, 6, 4)
            ConvTranspose2d<4, 2, Stride<2>, Groups<4>>, Conv2d<5, 1>,
            Conv2d<3, 3, Padding<1, 0>, NoBias>, Flatten, Linear<2>, MSE> {};
struct Sequence : Model<Input<9, 3>, Conv1d<4, 3, Padding<1>, Stride<2>>, Tanh,
                        ConvTranspose1d<3, 4, Stride<3>>, Flatten, Linear<2>, MSE> {};

}  // namespace

TEST_CASE("convolutions are PyTorch's", "[golden]") {
  check<Images>("images");
  check<Sequence>("sequence");
}
