// SPDX-License-Identifier: BSL-1.0
//
// Models of matrix products through their CUDA kernel bodies.
#include "cuda/agreement.hpp"

using namespace pp;

TEST_CASE("models of matrix products agree with the host", "[cuda]") {
  struct Wide : Model<Input<40, 8>, Linear<48, NoBias>, SiLU, Dropout<1, 4>, Linear<72>, GELUTanh,
                      Linear<8>, MSE> {};
  on_host::agrees_with_the_host<Wide, MicroBatches<2>, MicroBatchSize<2>>();
  struct Shared : Model<Tokens<13, 5>, Named<"tokens", Embedding<16>>, Linear<24>, GELUTanh,
                        Linear<16>, Tied<"tokens">, CrossEntropy> {};
  on_host::agrees_with_the_host<Shared, MicroBatches<2>, MicroBatchSize<3>>();
  struct Odd : Model<Input<7>, Dropout<1, 3>, Linear<5>, Sigmoid, Dropout<1, 4>, Linear<24>,
                     Stash<"x">, Linear<33>, Tanh, Linear<24>, Pop<"x">, Linear<3>, MSE> {};
  on_host::agrees_with_the_host<Odd, MicroBatches<3>, MicroBatchSize<5>, Stages<2>>();
}
