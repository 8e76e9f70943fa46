// SPDX-License-Identifier: BSL-1.0
//
// Recomputation ahead of the gradient: the bits of a stage that stores everything, with and without
// a barrier between steps.
#include <catch2/catch.hpp>

#include <vector>

#include "laws/bit_law.hpp"
#include "laws/schedules.hpp"

#include <pipe/schedule/families.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELU, Dropout<1, 5>, Linear<8>, GELU, Linear<8>, GELU,
                   Linear<4>, MSE> {};
struct Words : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Positions, Stash<"begin">,
                     Residual<LayerNorm, Attention<2>>,
                     Residual<LayerNorm, Linear<9>, GELU, Linear<6>>, SiLU, Pop<"begin">, LayerNorm,
                     Tied<"table">, CrossEntropy> {};

template <class M, class... More>
using Small = Pipeline<M, PortableHost, AdamW, MicroBatchSize<2>, More...>;

template <class M, int MicroBatchCount, class... More>
void check() {
  laws::same_as_one_stage<Small<M, MicroBatches<MicroBatchCount>>,
                          Small<M, MicroBatches<MicroBatchCount>, More...>>(5, 2);
}

}  // namespace

TEST_CASE("recomputation ahead has the bits of keeping", "[laws]") {
  check<Net, 4, RecomputeAll, RecomputeAhead<OneFOneB>, Stages<4>>();
  check<Net, 4, RecomputeAll, RecomputeAhead<ZeroBubbleH1>, Stages<4>>();
  check<Net, 4, RecomputeAll, RecomputeAhead<Interleaved<2>>, Stages<4>, HostThreads<2>>();
  check<Words, 4, RecomputeAll, RecomputeAhead<ZeroBubbleV>, Stages<4>>();
  check<Words, 5, RecomputeAllButLast, RecomputeAhead<GPipe>, Stages<3>>();
  check<Words, 4, Recompute<op_kind::attention, op_kind::norm>, RecomputeAhead<OneFOneB>,
        Stages<4>>();
  check<Words, 4, Recompute<op_kind::map, op_kind::matmul>, RecomputeAhead<ZeroBubbleH2>,
        Stages<4>>();
}
TEST_CASE("several ranks may recompute ahead for a stage", "[laws]") {
  check<Net, 6, RecomputeAll, RecomputeAhead<OneFOneB>, StageReplicas<1, 2, 1>>();
  check<Net, 8, RecomputeAll, RecomputeAhead<DualPipe>, Stages<4>>();
}
TEST_CASE("one stage recomputes nothing that it reads next", "[laws]") {
  using T = Small<Net, MicroBatches<4>, RecomputeAll, RecomputeAhead<OneFOneB>>;
  static_assert(T::plan().stages[0].recompute_flops == 0);
  check<Net, 4, RecomputeAll, RecomputeAhead<OneFOneB>>();
  check<Net, 4, RecomputeAll, RecomputeAhead<GPipe>>();
}
TEST_CASE("steps that overlap recompute ahead with the weights of their forward", "[laws]") {
  using Barrier = Small<Net, MicroBatches<4>, RecomputeAll, OneFOneB, Stages<4>>;
  using Ahead = Small<Net, MicroBatches<4>, RecomputeAll, Steady<RecomputeAhead<ZeroBubbleH2>>,
                      Stages<4>>;
  for (double const clip : {0., 1e-3, 0.6}) {  // never clipped; always; sometimes
    Barrier a({.seed = 3, .clip_norm = clip});
    Ahead b({.seed = 3, .clip_norm = clip});
    std::vector<laws::sample_batch<Barrier>> data;
    for (unsigned i = 0; i < 6; ++i) data.emplace_back(5 + i);
    std::vector<Barrier::batch> ours;
    std::vector<Ahead::batch> theirs;
    for (auto const& d : data) ours.push_back(d.view()), theirs.push_back(d.view<Ahead>());
    std::vector<double> x, y;
    a.train(ours, [&](step_result const& r) { x.push_back(r.loss), x.push_back(r.gradient_norm); });
    b.train(theirs,
            [&](step_result const& r) { y.push_back(r.loss), y.push_back(r.gradient_norm); });
    CHECK(x.size() == 12);
    CHECK(x == y);
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
  }
}
