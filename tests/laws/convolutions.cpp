// SPDX-License-Identifier: BSL-1.0
//
// The laws for convolutions: dense, in groups, depthwise and transposed, of images and sequences.
#include <catch2/catch.hpp>

#include "laws/eager.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

struct Images
    : Model<Input<5, 6, 4>, Conv2d<6, Axes<3, 2>, Stride<2>, Padding<2>, Dilation<2>, Groups<2>>,
            GELU, ConvTranspose2d<4, 3, Stride<2>, Padding<1>, OutputPadding<1>>,
            Residual<Conv2d<4, 3, Groups<4>, Padding<1>>, Tanh, Conv2d<4, 1>,
                     Conv2d<4, 3, Padding<1>, NoBias>>,
            Flatten, Linear<3>, CrossEntropy> {};
struct Sequence : Model<Input<7, 3>, Conv1d<4, 3, Padding<1>, Stride<2>>, Tanh,
                        ConvTranspose1d<4, 4, Stride<3>, Groups<4>>, MeanPool, Linear<2>, MSE> {};

template <class Backend, class... Options>
using Trained = Pipeline<Images, Backend, MicroBatches<3>, MicroBatchSize<2>, Options...>;

}  // namespace

TEST_CASE("convolutions obey the laws", "[laws]") {
  laws::obeys<Images>(1);
  laws::gradients_are_differences<Sequence>(2);
}
TEST_CASE("threads and recomputation keep the bits of convolutions", "[laws]") {
  using many = Trained<laws::Eager<PortableHost>, HostThreads<3>, Stages<2>, GPipe,
                       Recompute<op_kind::convolution, op_kind::map>>;
  laws::train_alike_from_the_start<Trained<PortableHost>, many>(3, 2);
}
