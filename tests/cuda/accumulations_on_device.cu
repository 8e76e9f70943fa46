// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches that are trees of accumulations, on a GPU. Compiled wherever nvcc is; run wherever a
// GPU is.
#include "cuda/device_laws.hpp"
#include "laws/accumulation_law.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<3>, Linear<8>, Tanh, Linear<5>, Tanh, Linear<2>, MSE> {};
/// Accumulations of eight samples.
template <class... More>
using Accumulation = Pipeline<Net, Cuda, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("gradients and loss of accumulations are added on the device in a balanced binary tree",
          "[gpu]") {
  laws::accumulations_are_added_in_a_tree<Accumulation<GradientAccumulation<4>>, Accumulation<>>();
}
TEST_CASE("a mini-batch with too few samples is one of fewer accumulations on the device",
          "[gpu]") {
  laws::accumulations_without_samples_add_nothing<Accumulation<GradientAccumulation<4>>,
                                                  Accumulation<GradientAccumulation<2>>>();
}
TEST_CASE("accumulations on the device have the bits of one stage", "[gpu]") {
  // Five steps: by streams, captured and replayed.
  laws::train_alike_from_the_start<Accumulation<GradientAccumulation<4>>,
                                   Accumulation<GradientAccumulation<4>, Stages<3>, ZeroBubbleH1>>(
      7, 5, 5);
}
