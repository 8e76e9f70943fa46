// SPDX-License-Identifier: BSL-1.0
//
// Models whose losses, gates, concatenations and parameter gradients run through CUDA kernel
// bodies.
#include "cuda/agreement.hpp"
#include "laws/every_layer.hpp"

using namespace pp;

namespace {

template <class Loss>
struct Ends : Model<Input<2, 3>, Linear<7>, Tanh, Linear<19>, LayerNorm, Loss> {};
template <class Loss>
struct Wide : Model<Input<3>, Linear<264>, Loss> {};

/// A further loss without labels.
struct Coded : Model<Input<2, 3>, Linear<6>, Tanh, Stash<"code">, Linear<5>,
                     Losses<MSE, FurtherLoss<"spread", "code", TripletMarginLoss<1, 2>>>> {};
struct Triplets : Model<Input<2, 3>, Linear<12>, TripletMarginLoss<>> {};

struct Gates : Model<Input<2, 3>, Linear<10>, SwiGLU, Linear<18>, LayerNorm, GEGLU,
                     Residual<Linear<18>, GLU, Tanh>, Flatten, GEGLU, Linear<3>, CrossEntropy> {};
struct GatesOnInput
    : Model<Input<2, 24>, SwiGLU, Positions, Linear<8>, GLU, Dropout<1, 4>, Tanh, MSE> {};

struct Joined : Model<Input<2, 3>, Linear<9>, Tanh, Stash<"x">, Linear<12>, LayerNorm,
                      Pop<"x", Concat>, RMSNorm, Stash<"y">, Linear<4>, Pop<"y", Concat>, GELUTanh,
                      Dropout<1, 5>, Linear<3>, MSE> {};

}  // namespace

TEST_CASE("losses agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<Ends<MSE>, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Wide<BCE>, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Ends<Huber<1, 3>>, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Ends<CrossEntropy>, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Wide<With<CrossEntropy, ZLoss<1, 10>, LabelSmoothing<3, 10>>>,
                                MicroBatches<2>, MicroBatchSize<3>>();
}
TEST_CASE("losses with weights and further targets agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<laws::EveryLoss<laws::Surprise>, MicroBatches<2>,
                                MicroBatchSize<3>>();
  on_host::agrees_with_the_host<laws::EveryLoss<laws::Spread>, MicroBatches<2>,
                                MicroBatchSize<3>>();
  on_host::agrees_with_the_host<laws::EveryLoss<laws::UnequalClasses>, MicroBatches<2>,
                                MicroBatchSize<3>>();
}
TEST_CASE("losses by rows agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<Ends<SoftCrossEntropy>, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Ends<With<KLDivLoss, Weights<"weight">>>, MicroBatches<2>,
                                MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Triplets, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Coded, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Coded, MicroBatches<2>, MicroBatchSize<3>, Stages<2>>();
}
TEST_CASE("pools agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<laws::EveryPool<MeanPool>, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<laws::EveryPool<LastPosition>, MicroBatches<2>,
                                MicroBatchSize<3>>();
}
TEST_CASE("pools, upsampling and padding agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<laws::EveryResampling, MicroBatches<2>, MicroBatchSize<3>>();
}
TEST_CASE("rows that are compared agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<laws::EveryComparison, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<laws::EveryComparison, MicroBatches<3>, MicroBatchSize<2>,
                                Stages<4>>();
}
TEST_CASE("losses of all rows of a micro-batch agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<laws::EveryContrast<>, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<laws::EveryContrast<Symmetric>, MicroBatches<3>, MicroBatchSize<2>,
                                Stages<2>>();
  on_host::agrees_with_the_host<laws::FurtherContrast, MicroBatches<2>, MicroBatchSize<3>>();
  struct Large : Model<Input<2, 3>, ConcatOf<Linear<130>, Linear<130>>, InfoNCE<2, 1, Symmetric>> {
  };
  on_host::agrees_with_the_host<Large, MicroBatches<1>, MicroBatchSize<80>>();
}
TEST_CASE("gates agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<Gates, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<GatesOnInput, MicroBatches<2>, MicroBatchSize<3>, Stages<2>>();
}
TEST_CASE("concatenations agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<Joined, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Joined, MicroBatches<3>, MicroBatchSize<2>, Stages<2>>();
}
