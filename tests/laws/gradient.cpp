// SPDX-License-Identifier: BSL-1.0
//
// The gradient law for every layer, in double. Each model begins with a Linear or an Embedding, so
// that the input gradients of the layers after it are tested too, and has odd widths, so that the
// remainder paths of every kernel run.
#include "catch.hpp"

#include "laws/gradient_law.hpp"

using namespace pp;

namespace {

struct Activations : Model<Input<3>, Linear<17>, GELUTanh, Linear<5, NoBias>, GELU, Linear<3>, SiLU,
                           Linear<1>, Tanh, Linear<9>, Sigmoid, MSE> {};
struct Norms
    : Model<Input<2, 3>, Linear<17>, LayerNorm, SiLU, RMSNorm, Linear<1>, Positions, Flatten,
            Linear<7>, ReLU, Residual<Linear<3>, RMSNorm, Linear<7>, LayerNorm>, CrossEntropy> {};
struct Attends : Model<Tokens<11, 5>, Embedding<6>, Positions, Attention<1>,
                       Residual<LayerNorm, Attention<3, NotCausal>>, Attention<2, NoBias>,
                       Linear<11>, CrossEntropy> {};
struct Reads : Model<Input<3, 2, 5>, Tanh, LayerNorm,
                     Residual<Seq<ReLU, Linear<5>>, Repeat<2, Tanh, Linear<5>>>,
                     Attention<5, NoBias, NotCausal>, ReLU, MSE> {};

template <class M, class... More>
using Exact = Pipeline<M, FP64, PortableHost, More...>;

}  // namespace

TEST_CASE("gradients are central differences: Linear, activations, MSE", "[laws]") {
  laws::gradients_hold<Exact<Activations, MicroBatches<2>, MicroBatchSize<3>>>(1);
}
TEST_CASE("gradients are central differences: norms, Positions, Flatten, Residual, CrossEntropy",
          "[laws]") {
  laws::gradients_hold<Exact<Norms, MicroBatches<3>, MicroBatchSize<2>>>(2);
}
TEST_CASE("gradients are central differences: Embedding and Attention", "[laws]") {
  laws::gradients_hold<Exact<Attends, MicroBatches<2>, MicroBatchSize<2>>>(3);
}
TEST_CASE("gradients are central differences: layers that read the input itself", "[laws]") {
  laws::gradients_hold<Exact<Reads, MicroBatches<2>, MicroBatchSize<1>, Stages<2>>>(4);
}
