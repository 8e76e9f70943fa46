// SPDX-License-Identifier: BSL-1.0
//
// Whole models through CUDA kernel bodies on the CPU: they agree with the host, and how a model is
// cut and scheduled changes no bit.
#include "cuda/agreement.hpp"
#include "laws/bit_law.hpp"
#include "laws/every_layer.hpp"
#include "laws/everything.hpp"

using namespace pp;

TEST_CASE("a model with everything agrees with the host", "[cuda]") {
  on_host::agrees_with_the_host<laws::Everything, AdamW, MicroBatches<2>, MicroBatchSize<2>>(2e-5);
  on_host::agrees_with_the_host<laws::Everything, AdamW, MicroBatches<2>, MicroBatchSize<2>,
                                Stages<2>, ZeroBubbleH1, RecomputeAll>(2e-5);
}

TEST_CASE("models of every layer and every loss agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<laws::EveryLayer, AdamW, MicroBatches<2>, MicroBatchSize<2>>(2e-5);
  on_host::agrees_with_the_host<laws::EveryLoss<laws::LogCosh>, MicroBatches<2>,
                                MicroBatchSize<2>>();
}

TEST_CASE("cuts and schedules change no bit of what CUDA kernel bodies make", "[cuda]") {
  using one =
      Pipeline<laws::Everything, on_host::Kernels, AdamW, MicroBatches<3>, MicroBatchSize<2>>;
  laws::train_alike_from_the_start<one, Pipeline<laws::Everything, on_host::Kernels, AdamW,
                                                 MicroBatches<3>, MicroBatchSize<2>, Stages<4>>>(
      7, 2, 3);
  laws::train_alike_from_the_start<
      one, Pipeline<laws::Everything, on_host::Kernels, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                    Stages<8>, VHalf, RecomputeAllButLast>>(7, 2, 3);
}
