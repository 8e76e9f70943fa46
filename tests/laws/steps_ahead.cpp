// SPDX-License-Identifier: BSL-1.0
//
// Recomputation ahead of the gradient where ranks depend on each other in other ways, too: stages
// on several ranks, and steps without a barrier.
#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/overlap_law.hpp"

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELUTanh, Dropout<1, 5>, Linear<8>, GELUTanh, Linear<8>,
                   GELUTanh, Linear<4>, MSE> {};

template <class... More>
using Small =
    Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, RecomputeAll, More...>;

}  // namespace

TEST_CASE("ranks that share a stage recompute ahead", "[laws]") {
  laws::same_as_one_stage<Small<>, Small<RecomputeAhead<OneFOneB>, StageReplicas<1, 2, 1>>>(5, 2);
}
TEST_CASE("steps that overlap recompute ahead with the weights of their forward", "[laws]") {
  using Ahead = Small<Steady<RecomputeAhead<ZeroBubbleH2>>, Stages<4>>;
  for (double const clip : {0., 1e-3, 0.35})  // never clipped; always; sometimes
    laws::same_runs<Small<>, Ahead>(clip);
}

namespace {
/// M micro-batches of four stages without a flush: those that keep all values, and R.
template <class S, int M>
void recomputes_with_its_version() {
  using Keeping =
      Pipeline<Net, PortableHost, AdamW, MicroBatches<M>, MicroBatchSize<2>, Stages<4>, S>;
  using Ahead = Pipeline<Net, PortableHost, AdamW, MicroBatches<M>, MicroBatchSize<2>, Stages<4>,
                         RecomputeAhead<S>, RecomputeAll>;
  for (int s = 0; s < 4; ++s) {
    CHECK((Ahead::plan().stages[s].recompute_flops > 0) == (s < 3));
    CHECK(Ahead::plan().stages[s].versions == Keeping::plan().stages[s].versions);
  }
  laws::same_runs<Keeping, Ahead>(0);
}
}  // namespace

TEST_CASE("R reads the weights of its forward without a flush, too", "[laws]") {
  recomputes_with_its_version<PipeDream<>, 1>();
  recomputes_with_its_version<PipeDream<true>, 2>();
  recomputes_with_its_version<PipeDream2BW<>, 3>();
}
