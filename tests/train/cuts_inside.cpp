// SPDX-License-Identifier: BSL-1.0
//
// The cuts of models that may be cut inside of their layers: the best of all cuts, found by trying
// every one, and faster where one layer takes too long.
#include "catch.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>

#include "laws/random_model.hpp"

using namespace pp;

namespace {

template <unsigned Seed, template <class...> class Block>
struct Random : Model<Input<2, 5>,
                      Block<typename laws::RandomLayers<Seed, 4>::type, Linear<5>,
                            Residual<LayerNorm, Linear<20>, Tanh, Linear<5>>>,
                      Linear<3>, CrossEntropy> {};

/// The time of the slowest stage, the bytes of the fullest rank, the bytes of transfers.
using worth = std::tuple<long, long, long>;
worth worth_of(detail::cut_problem const& p, int const* cuts) {
  std::vector<long> bytes(std::size_t(p.ranks), 0);
  long slowest = 0, crossing = 0;
  for (int s = 0; s < p.stages; ++s) {
    long time = 0, owned = 0, kept = 0;
    for (int u = cuts[s]; u < cuts[s + 1]; ++u)
      time += p.times[u], owned += p.state[u], kept += p.kept[u];
    slowest = std::max(slowest, time);
    bytes[std::size_t(p.rank[s])] += owned + p.in_flight[s] * kept;
    if (s > 0) crossing += p.crossing[cuts[s]];
  }
  return {slowest, *std::max_element(bytes.begin(), bytes.end()), crossing};
}
/// The least worth of all cuts, and their number.
struct trial {
  worth best{LONG_MAX, LONG_MAX, LONG_MAX};
  int count = 0;
};
void try_all(detail::cut_problem const& p, std::vector<int>& cuts, trial& t) {
  int const s = int(cuts.size());
  if (s == p.stages) {
    cuts.push_back(p.layers);
    t.best = std::min(t.best, worth_of(p, cuts.data()));
    ++t.count;
    cuts.pop_back();
    return;
  }
  for (int cut = cuts.back() + 1; cut <= p.layers - (p.stages - s); ++cut) {
    cuts.push_back(cut);
    try_all(p, cuts, t);
    cuts.pop_back();
  }
}

/// The worth of a model's cuts, which is the best of all.
template <class M, int StageCount>
worth best_cuts() {
  using cuts =
      detail::chosen_cuts<M, detail::chosen_options<detail::option_set<
                                 Stages<StageCount>, MicroBatches<4>, MicroBatchSize<2>, AdamW>>>;
  detail::list<long, cuts::described::units> times;
  for (int u = 0; u < times.size(); ++u)
    times[u] = detail::training_time(cuts::described::training_costs[u]);
  worth chosen;
  cuts::with_problem(times, [&](detail::cut_problem const& p) {
    chosen = worth_of(p, cuts::cuts.items);
    std::vector<int> first{0};
    trial all;
    try_all(p, first, all);
    INFO(all.count << " cuts of " << p.layers << " layers");
    CHECK(all.count > 0);
    CHECK(chosen == all.best);
  });
  return chosen;
}
/// Cut inside, a model's slowest stage is at least as fast.
template <unsigned Seed>
bool gains() {
  INFO("seed " << Seed);
  constexpr int whole = Random<Seed, Group>::graph.size.units,
                inside = Random<Seed, CutInside>::graph.size.units;
  static_assert(inside >= whole);
  long const before = std::get<0>(best_cuts<Random<Seed, Group>, 3>()),
             after = std::get<0>(best_cuts<Random<Seed, CutInside>, 3>());
  CHECK(after <= before);
  best_cuts<Random<Seed, CutInside>, 5>();
  return after < before;
}

// ---- a model of which one layer takes most of the time ----

// [inside]
using Wide = Residual<LayerNorm, Linear<1024>, GELUTanh, Linear<64>>;
template <class L>
struct Heavy : Model<Input<8, 64>, Linear<64>, L, Linear<64>, MSE> {};
using Finer = Heavy<CutInside<Wide>>;  // as Heavy<Wide>, with six layers instead of three
// [/inside]
template <class L>
using planned = Planned<Heavy<L>, Stages<3>, MicroBatches<6>, MicroBatchSize<4>, AdamW>;

// ---- attention over many positions ----

using Long = Residual<LayerNorm, Attention<4>>;
template <class L>
struct Reading : Model<Input<2048, 32>, L, Linear<8>, CrossEntropy> {};
template <class L>
using reading = Planned<Reading<L>, Stages<2>, MicroBatches<4>, MicroBatchSize<1>, SGD>;

}  // namespace

TEST_CASE("the cuts of models that are cut inside are the best of all", "[train]") {
  int const gained =
      gains<1>() + gains<2>() + gains<3>() + gains<4>() + gains<5>() + gains<7>() + gains<8>();
  CHECK(gained >= 3);
}
TEST_CASE("a layer that takes too long is cut inside", "[train]") {
  CHECK(Heavy<Wide>::graph.size.units == 3);
  CHECK(Finer::graph.size.units == 6);
  auto const &whole = planned<Wide>::plan(), &inside = planned<CutInside<Wide>>::plan();
  CHECK(whole.imbalance > 2.82);
  CHECK(inside.imbalance < 1.42);
  CHECK(whole.limiting_layer == 1);
  CHECK(inside.bubble < whole.bubble);
  CHECK(inside.parameters == whole.parameters);
  CHECK(inside.stages[1].first_layer == 3);  // behind the norm and the first product
  CHECK(inside.stages[1].in == sample_shape(8, 1024));
}
TEST_CASE("a plan says which layer no cut makes faster, and whether it can be cut inside",
          "[train]") {
  std::string const whole = explain<planned<Wide>>(), inside = explain<planned<CutInside<Wide>>>();
  INFO(whole << inside);
  CHECK_THAT(whole, Catch::Contains("only CutInside<...> around it or more ranks"));
  CHECK_THAT(whole, !Catch::Contains("finer layers"));
  CHECK_THAT(inside, !Catch::Contains("around it"));
}
TEST_CASE("an attention over many positions is cut at its scores", "[train]") {
  auto const &whole = reading<Long>::plan(), &inside = reading<CutInside<Long>>::plan();
  INFO(explain<reading<CutInside<Long>>>());
  CHECK(inside.imbalance <= whole.imbalance);
  CHECK_THAT(explain<reading<CutInside<Long>>>(), Catch::Contains("Attention<4>"));
}
