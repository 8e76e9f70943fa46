// SPDX-License-Identifier: BSL-1.0
//
// Chains of pointwise ops through their CUDA kernel bodies.
#include "cuda/agreement.hpp"

using namespace pp;

TEST_CASE("pointwise chains agree with the host", "[cuda]") {
  struct Wide : Model<Input<24>, GELUTanh, Dropout<1, 4>, Stash<"x">, Tanh, Linear<24>, Pop<"x">,
                      SiLU, MSE> {};
  on_host::agrees_with_the_host<Wide, MicroBatches<2>, MicroBatchSize<3>>();
  struct Products : Model<Input<24>, Linear<24>, Stash<"x">, Linear<24>, Pop<"x", Multiply>, Tanh,
                          ProductOf<Sigmoid, Linear<24>>, Pop<"x", Subtract>,
                          Residual<ProductOf<Tanh, Tanh>>, Linear<5>, MSE> {};
  on_host::agrees_with_the_host<Products, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Products, MicroBatches<2>, MicroBatchSize<3>, Stages<3>>();
  struct Odd : Model<Input<7>, Tanh, Dropout<1, 3>, Linear<5>, Sigmoid, MSE> {};
  on_host::agrees_with_the_host<Odd, MicroBatches<2>, MicroBatchSize<3>, Stages<2>>();
}
