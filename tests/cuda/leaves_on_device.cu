// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches that are trees of leaves, on a GPU. Compiled wherever nvcc is; run wherever a GPU
// is.
#include "cuda/device_laws.hpp"
#include "laws/leaf_law.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<3>, Linear<8>, Tanh, Linear<5>, Tanh, Linear<2>, MSE> {};
/// Leaves of eight samples.
template <class... More>
using Leaf = Pipeline<Net, Cuda, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("gradients and loss of leaves are added on the device in a balanced binary tree",
          "[gpu]") {
  laws::leaves_are_added_in_a_tree<Leaf<GradientAccumulation<4>>, Leaf<>>();
}
TEST_CASE("a mini-batch with too few samples is one of fewer leaves on the device", "[gpu]") {
  laws::leaves_without_samples_add_nothing<Leaf<GradientAccumulation<4>>,
                                           Leaf<GradientAccumulation<2>>>();
}
TEST_CASE("leaves on the device have the bits of one stage", "[gpu]") {
  // Five steps: by streams, captured and replayed.
  laws::train_alike_from_the_start<Leaf<GradientAccumulation<4>>,
                                   Leaf<GradientAccumulation<4>, Stages<3>, ZeroBubbleH1>>(7, 5, 5);
}
