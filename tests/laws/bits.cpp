// SPDX-License-Identifier: BSL-1.0
//
// The bit law over stage counts, micro-batches, schedules and cuts.
#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

/// Every kind of layer, few numbers. Layers that a stage may begin or end with: Positions (the
/// gradient passes through), ReLU (its backward reads what was handed on), GELU (reads what was
/// handed to it), Flatten (no work at all).
struct Mixed
    : Model<Tokens<7, 3>, Embedding<5>, Positions,
            Repeat<2, Residual<LayerNorm, Linear<6>, GELUTanh, Linear<5>>>, Attention<5>, Linear<4>,
            ReLU, Linear<3>, Flatten, Tanh, Positions, RMSNorm, Linear<7>, SiLU, CrossEntropy> {};
static_assert(Mixed::graph.size.units == 13);

template <class M, class... More>
using Small = Pipeline<M, PortableHost, AdamW, More...>;

template <class M, int MicroBatchCount, int Size>
using One = Small<M, MicroBatches<MicroBatchCount>, MicroBatchSize<Size>>;

template <class M, int MicroBatchCount, class... More>
void check() {
  laws::same_as_one_stage<One<M, MicroBatchCount, 1>,
                          Small<M, MicroBatches<MicroBatchCount>, More...>>(5);
}

}  // namespace

TEST_CASE("1F1B gives the bits of one stage", "[laws]") {
  check<Mixed, 4, Stages<2>>();
  check<Mixed, 9, Stages<3>>();
  check<Mixed, 1, Stages<4>>();
  check<Mixed, 4, Stages<5>, ByCount>();
  check<Mixed, 4, Stages<13>>();
}
TEST_CASE("GPipe gives the bits of one stage", "[laws]") {
  check<Mixed, 4, GPipe, Stages<3>, ByCount>();
  check<Mixed, 9, GPipe, Stages<6>>();
  check<Mixed, 1, GPipe, Stages<13>>();
}
TEST_CASE("a cut may fall anywhere", "[laws]") {
  check<Mixed, 4, Stages<6>, Cut<6, 7, 9, 10, 12>>();
  check<Mixed, 4, Stages<4>, Cut<1, 2, 8>>();
}
TEST_CASE("B and W apart give the bits of one stage", "[laws]") {
  check<Mixed, 9, laws::LateWeights, Stages<6>, Cut<6, 7, 9, 10, 12>>();
  check<Mixed, 9, laws::LastWeights, Stages<3>>();
  check<Mixed, 9, laws::MixedWeights, Stages<5>, Cut<1, 2, 6, 9>>();
}
TEST_CASE("several chunks per rank give the bits of one stage", "[laws]") {
  check<Mixed, 4, laws::ManyChunks<schedules::placement::loop, 2>, Stages<4>>();
  check<Mixed, 4, laws::ManyChunks<schedules::placement::loop, 3, true>, Stages<6>,
        Cut<6, 7, 9, 10, 12>>();
  check<Mixed, 4, laws::ManyChunks<schedules::placement::vee, 2>, Stages<6>>();
  check<Mixed, 9, laws::ManyChunks<schedules::placement::loop, 2>, Stages<2>>();
}

TEST_CASE("looking changes nothing", "[laws]") {
  laws::looking_changes_nothing<Small<Mixed, MicroBatches<4>, Stages<3>>>();
  laws::looking_changes_nothing<
      Small<Mixed, MicroBatches<9>, Stages<6>, Cut<6, 7, 9, 10, 12>, laws::LateWeights>>();
}
TEST_CASE("runs repeat, seeds differ", "[laws]") {
  using trainer = Small<Mixed, MicroBatches<4>, Stages<3>>;
  trainer a({.seed = 1}), b({.seed = 1}), c({.seed = 2});
  laws::train_alike(a, b, 3, 2);
  CHECK_FALSE(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(c).values));
  CHECK_FALSE(laws::same_numbers(laws::snapshot(trainer({.seed = 1})).values,
                                 laws::snapshot(trainer({.seed = 3})).values));
}
