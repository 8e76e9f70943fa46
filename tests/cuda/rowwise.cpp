// SPDX-License-Identifier: BSL-1.0
//
// Norms and softmax through their CUDA kernel bodies: models of odd and even widths against the
// host's kernels, and rows of every kind of team against fp64.
#include "cuda/agreement.hpp"

using namespace pp;

TEST_CASE("norms agree with the host", "[cuda]") {
  struct Narrow : Model<Input<3, 5>, Linear<12>, LayerNorm, GELUTanh, Dropout<1, 4>, Linear<7>,
                        RMSNorm, Tanh, Residual<LayerNorm, Sigmoid>, Linear<4>, MSE> {};
  on_host::agrees_with_the_host<Narrow, MicroBatches<2>, MicroBatchSize<3>>();
  struct Before
      : Model<Input<2, 6>, Positions, LayerNorm, Linear<264>, GELUTanh, LayerNorm, SiLU,
              Dropout<1, 3>, RMSNorm, Residual<Tanh, RMSNorm, Dropout<1, 7>>, Linear<3>, MSE> {};
  on_host::agrees_with_the_host<Before, MicroBatches<2>, MicroBatchSize<2>, Stages<2>>();
}
TEST_CASE("softmax agrees with the host", "[cuda]") {
  struct Soft : Model<Input<2, 19>, Softmax, Positions, Softmax, Linear<9>, Softmax, LayerNorm,
                      Linear<17>, Tanh, Softmax, Dropout<1, 4>, Residual<Sigmoid, Softmax>,
                      Linear<268>, Softmax, SiLU, MSE> {};
  on_host::agrees_with_the_host<Soft, MicroBatches<2>, MicroBatchSize<3>>();
}
