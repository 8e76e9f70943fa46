// SPDX-License-Identifier: BSL-1.0
//
// Recomputation ahead of the gradient where ranks depend on each other in other ways, too: stages
// on several ranks, and steps without a barrier.
#include <catch2/catch.hpp>

#include <vector>

#include "laws/bit_law.hpp"

#include <pipe/schedule/families.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELU, Dropout<1, 5>, Linear<8>, GELU, Linear<8>, GELU,
                   Linear<4>, MSE> {};

template <class... More>
using Small =
    Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, RecomputeAll, More...>;

}  // namespace

TEST_CASE("ranks that share a stage recompute ahead", "[laws]") {
  laws::same_as_one_stage<Small<>, Small<RecomputeAhead<OneFOneB>, StageReplicas<1, 2, 1>>>(5, 2);
}
TEST_CASE("steps that overlap recompute ahead with the weights of their forward", "[laws]") {
  using Barrier = Small<>;
  using Ahead = Small<Steady<RecomputeAhead<ZeroBubbleH2>>, Stages<4>>;
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
