// SPDX-License-Identifier: BSL-1.0
//
// Models whose matrix products are computed as their descriptions for cuBLASLt say: they agree with
// the host, and cuts change no bit.
#include "cuda/agreement.hpp"
#include "cuda/blas_on_host.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

using namespace pp;

TEST_CASE("models whose products are calls agree with the host", "[cuda]") {
  struct Plain : Model<Input<24>, Linear<40>, ReLU, Linear<24>, Stash<"x">, Linear<33>, GELUTanh,
                       Linear<24>, Pop<"x">, MSE> {};
  on_host::agrees_with_the_host_on<on_host::BlasKernels, Plain, MicroBatches<2>,
                                   MicroBatchSize<3>>();
  struct Odd : Model<Input<7>, Dropout<1, 3>, Linear<5>, Sigmoid, Dropout<1, 4>, Linear<19>, ReLU,
                     Linear<3, NoBias>, MSE> {};
  on_host::agrees_with_the_host_on<on_host::BlasKernels, Odd, MicroBatches<3>, MicroBatchSize<5>,
                                   Stages<2>>();
}

TEST_CASE("cuts and recomputation change no bit where products are calls", "[cuda]") {
  using one =
      Pipeline<laws::Everything, on_host::BlasKernels, AdamW, MicroBatches<3>, MicroBatchSize<2>>;
  laws::train_alike_from_the_start<
      one, Pipeline<laws::Everything, on_host::BlasKernels, AdamW, MicroBatches<3>,
                    MicroBatchSize<2>, Stages<8>, VHalf, RecomputeAllButLast>>(7, 2, 3);
}
