// SPDX-License-Identifier: BSL-1.0
//
// The bit law over processes for a schedule of every family, with skips, a shared weight, dropout,
// micro-batches that are partly filled or empty, and every recompute policy.
#include "mpi/alike.hpp"

using namespace pp;

namespace {

using Selected = Recompute<op_kind::attention, op_kind::norm, op_kind::dropout>;
/// laws::Everything with stages for eight processes of two.
struct Deep
    : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Positions, Dropout<1, 10>, Stash<"begin">,
            Repeat<4, Residual<LayerNorm, Attention<2>, Dropout<1, 5>>,
                   Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>, Dropout<1, 4>>>,
            Stash<"late">, Tanh, Linear<6>, Pop<"late">, Pop<"begin">, LayerNorm, Tied<"table">,
            CrossEntropy> {};

template <class... More>
using Trained = Pipeline<Deep, PortableHost, AdamW, MicroBatches<5>, MicroBatchSize<2>, More...>;

template <class Schedule, int StageCount, class... More>
void gives_the_bits_of_one_stage() {
  processes::trains_alike<Trained<>, Trained<Between, Schedule, Stages<StageCount>, More...>>();
}

}  // namespace

TEST_CASE("one chunk per rank") {
  gives_the_bits_of_one_stage<GPipe, 8, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<OneFOneB, 8, RecomputeAll>();
  gives_the_bits_of_one_stage<EagerOneFOneB, 8, HostThreads<2>>();
}
TEST_CASE("several chunks per rank") {
  gives_the_bits_of_one_stage<Interleaved<2>, 16, RecomputeAll>();
  gives_the_bits_of_one_stage<GroupedInterleaved<2>, 16>();
  gives_the_bits_of_one_stage<LoopedBFS<2>, 16, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<Hanayo<1>, 16>();
}
TEST_CASE("a backward in two parts") {
  gives_the_bits_of_one_stage<ZeroBubbleH1, 8, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<ZeroBubbleH2, 8, RecomputeAll>();
  gives_the_bits_of_one_stage<ZeroBubble1P, 8>();
  gives_the_bits_of_one_stage<ZeroBubbleV, 16, Selected>();
  gives_the_bits_of_one_stage<VHalf, 16>();
  gives_the_bits_of_one_stage<VMin, 16>();
  // Which needs two micro-batches for each rank.
  processes::trains_alike<
      Pipeline<Deep, PortableHost, AdamW, MicroBatches<16>>,
      Pipeline<Deep, PortableHost, AdamW, MicroBatches<16>, Between, DualPipeV, Stages<16>>>();
}
