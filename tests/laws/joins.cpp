// SPDX-License-Identifier: BSL-1.0
//
// Values that are compared row by row, and branches that begin with a further input or a stashed
// value, under the laws: gradients of central differences, and the bits of one stage.
#include "catch.hpp"

#include <cmath>

#include "laws/bit_law.hpp"
#include "laws/every_layer.hpp"
#include "laws/gradient_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

/// Further inputs and stashed values where a branch begins, and in a residual.
// [inputs]
struct Joined
    : Model<Input<4>, Linear<6>, ConcatOf<Identity, Named<"more", Input<4>>>, Linear<10>, Tanh,
            Stash<"x">, Residual<Named<"shift", Input<10>>>,
            SumOf<Seq<Linear<10>, Tanh>, Recall<"x">>,
            DotOf<Linear<5>, Seq<Named<"word", Tokens<9, 1>>, Embedding<5>, Flatten>>, MSE> {};
// [/inputs]

template <class M, class... More>
using Exact = Pipeline<M, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("rows that are compared have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<laws::EveryComparison, Stages<5>, RecomputeAll>>(2);
}
TEST_CASE("rows that are compared give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<laws::EveryComparison, 4,
                              Stages<laws::EveryComparison::graph.size.units>,
                              laws::MixedWeights>();
  laws::options_keep_the_bits<laws::EveryComparison, 4, Stages<3>, GPipe, RecomputeAll,
                              HostThreads<2>>();
}
TEST_CASE("branches that begin with inputs have the gradients of central differences", "[laws]") {
  laws::gradients_hold<Exact<Joined, Stages<3>>>(4);
}
TEST_CASE("branches that begin with inputs give the bits of one stage", "[laws]") {
  laws::options_keep_the_bits<Joined, 4, Stages<Joined::graph.size.units>>();
}
