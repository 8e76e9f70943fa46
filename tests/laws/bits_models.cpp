// SPDX-License-Identifier: BSL-1.0
//
// The bit law of models whose stages begin, end or train in special ways.
#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

template <class M, int MicroBatchCount, class... More>
void check() {
  using One = Pipeline<M, PortableHost, AdamW, MicroBatches<MicroBatchCount>, MicroBatchSize<1>>;
  laws::same_as_one_stage<One,
                          Pipeline<M, PortableHost, AdamW, MicroBatches<MicroBatchCount>, More...>>(
      5);
}

/// The gradient of the loss itself leaves the last stage.
struct EndsInPositions : Model<Input<3>, Linear<5>, Tanh, Linear<4>, Positions, Positions, MSE> {};
/// The input needs no gradient, and neither does a stage that only works on it.
struct BeginsWithout
    : Model<Input<2, 3>, GELUTanh, Tanh, LayerNorm, Flatten, Linear<3>, CrossEntropy> {};

}  // namespace

TEST_CASE("a gradient passes through stages that do not change it", "[laws]") {
  check<EndsInPositions, 4, Stages<5>>();
  check<EndsInPositions, 4, Stages<3>, Cut<2, 3>>();
  check<EndsInPositions, 9, Stages<3>, Cut<3, 4>, laws::LastWeights>();
  check<EndsInPositions, 4, Stages<2>, Cut<4>, laws::MixedWeights>();
}
TEST_CASE("stages without parameters or gradients are stages", "[laws]") {
  check<BeginsWithout, 4, Stages<4>>();
  check<BeginsWithout, 4, Stages<3>, Cut<1, 2>, laws::LateWeights>();
}
namespace {

struct ManyGroups
    : Model<Tokens<11, 5>, Frozen<Embedding<6>, Positions, LayerNorm>,
            LoRA<Seq<Linear<4>, Attention<2>>, 3, Alpha<2>>,
            Group<LearningRate<1, 2>, Residual<LayerNorm, Linear<4>>, Frozen<Attention<2>>,
                  Linear<7>>,
            Tanh,
            Group<WeightDecay<0>, Linear<4>, Residual<Frozen<Linear<5>>, GELUTanh, Linear<4>>>,
            Frozen<Linear<11>>, CrossEntropy> {};

}  // namespace

TEST_CASE("groups and frozen layers keep the bits", "[laws]") {
  check<ManyGroups, 4, Stages<2>>();
  check<ManyGroups, 4, Stages<ManyGroups::graph.size.units>>();
  check<ManyGroups, 4, laws::LateWeights, Stages<4>>();
  check<ManyGroups, 9, laws::MixedWeights, Stages<3>, Cut<3, 6>>();
}
