// SPDX-License-Identifier: BSL-1.0
//
// Values in bfloat16 over processes: what goes from stage to stage has 16 bits, inputs, outputs and
// gradients of parameters have 32; and every replica and holder of a stage makes copies of its own.
#include "laws/everything.hpp"
#include "laws/models_of_stage_ranks.hpp"
#include "mpi/alike.hpp"

using namespace pp;

namespace {

template <class M, class... More>
using Of = Pipeline<M, BF16, PortableHost, AdamW, MicroBatchSize<2>, More...>;
/// Real-valued inputs and outputs.
struct Numbers
    : Model<Input<5>, Linear<8>, GELU, Linear<8>, LayerNorm, Linear<6>, Tanh, Linear<3>, MSE> {};

/// Parameters that replicas divide, with transposed copies and, in the table, without.
struct Deep : Model<Tokens<300, 4>, Embedding<128>, Positions,
                    Repeat<2, Residual<LayerNorm, Attention<2>>,
                           Residual<LayerNorm, Linear<260>, GELUTanh, Linear<128>>>,
                    LayerNorm, Linear<300>, CrossEntropy> {};
template <class... More>
using OfDeep =
    Pipeline<Deep, BF16, PortableHost, AdamW, MicroBatchSize<1>, GradientAccumulation<8>, More...>;

}  // namespace

TEST_CASE("bf16: processes give the bits of one stage") {
  using laws::Everything;
  processes::trains_alike<Of<Everything, MicroBatches<5>>,
                          Of<Everything, MicroBatches<5>, Between, ZeroBubbleV, Stages<8>>>();
  processes::trains_alike<Of<Numbers, MicroBatches<5>>,
                          Of<Numbers, MicroBatches<5>, Between, Stages<4>, RecomputeAll>>();
}
TEST_CASE("bf16: replicas give the bits of one process") {
  using sums = GradientAccumulation<8>;
  processes::trains_alike<Of<laws::Everything, MicroBatches<2>, sums>,
                          Of<laws::Everything, MicroBatches<2>, sums, Between, ZeRO<2>>>();
  processes::trains_alike<Of<Numbers, MicroBatches<1>, sums>,
                          Of<Numbers, MicroBatches<1>, sums, Between, Stages<2>, ZeRO<2>>>();
}
TEST_CASE("bf16: divided parameters come together, and get their copies there") {
  processes::trains_alike<OfDeep<MicroBatches<2>>,
                          OfDeep<MicroBatches<2>, Between, Stages<2>, ZeRO<3>>>();
}
TEST_CASE("bf16: so they do of one stage", "[long]") {
  processes::trains_alike<OfDeep<MicroBatches<1>>, OfDeep<MicroBatches<1>, Between, ZeRO<3>>>();
}
TEST_CASE("bf16: holders of a stage have copies of its weights") {
  if (Between::processes() <= 4)
    processes::trains_alike<Of<laws::Shared, MicroBatches<7>>,
                            Of<laws::Shared, MicroBatches<7>, Between, StageReplicas<2, 1, 1>>>();
}
