// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap, each a tree of accumulations (GradientAccumulation): the bits of steps with a
// barrier, or of one stage without a flush. A rank goes from accumulation to accumulation at once,
// and updates after the last one.
#include "catch.hpp"

#include <cstddef>
#include <vector>

#include "laws/centered.hpp"
#include "laws/overlap_law.hpp"

#include <pipe/plan/compiled/planned.hpp>
#include <pipe/schedule/catalog/families.hpp>

using namespace pp;
using laws::mini_batches, laws::same_numbers, laws::snapshot;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELUTanh, Linear<8>, Dropout<1, 5>, GELUTanh, Linear<8>,
                   GELUTanh, Linear<4>, MSE> {};
/// A parameter in the first and the last stage.
struct TiedNet : Model<Tokens<9, 4>, Named<"table", Embedding<8>>, Residual<LayerNorm, Linear<8>>,
                       GELUTanh, Linear<8>, Tied<"table">, CrossEntropy> {};
/// Buffers that follow the data.
struct FollowingNet : Model<Input<2, 3>, Custom<laws::Centered>, Linear<4>, GELUTanh, Linear<4>,
                            Custom<laws::Centered>, Linear<2>, MSE> {};

template <class M, class... Options>
using Of = Pipeline<M, PortableHost, AdamW, MicroBatchSize<2>, Options...>;

/// Four accumulations of two micro-batches.
template <class... Options>
using Four = Of<Net, MicroBatches<2>, GradientAccumulation<4>, Options...>;
using Barrier = Four<Stages<4>>;
using Overlapping = Four<Stages<4>, Steady<>>;
using Free = Four<Stages<4>, PipeDream<>>;

/// The law of laws/overlap_law.hpp for model M under S without a barrier, and with a barrier in one
/// stage, whose bits all schedules with a barrier have.
template <class M, class S, class Cut, class... Options>
void same_as_with_a_barrier(double clip_norm, double clip_value = 0, int bad = -1) {
  laws::same_runs<Of<M, Options...>, Of<M, Steady<S>, Cut, Options...>>(clip_norm, clip_value, bad);
}

/// Losses and parameters of two trainers, on as many samples of each mini-batch as are given.
template <class A, class B>
void trains_alike(std::vector<int> const& samples) {
  INFO(B::plan().schedule << " and " << A::plan().schedule);
  A a({.seed = 4});
  B b({.seed = 4});
  mini_batches<A> const data(int(samples.size()));
  std::vector<typename A::batch> x;
  std::vector<typename B::batch> y;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    x.push_back(data.all[i].view(samples[i]));
    y.push_back(data.all[i].template view<B>(samples[i]));
  }
  laws::history of_a, of_b;
  for (int call = 0; call < 2; ++call) of_a.train(a, x), of_b.train(b, y);
  CHECK(of_a.numbers == of_b.numbers);
  CHECK(of_a.numbers.size() == 4 * samples.size());
  CHECK(same_numbers(snapshot(a).values, snapshot(b).values));
}

/// Of full mini-batches of four accumulations of four samples, and of others, whose last
/// accumulations are empty.
std::vector<int> const few{16, 1, 16, 4, 7, 8, 16, 15, 2};

}  // namespace

TEST_CASE("steps of accumulations that overlap have the bits of steps with a barrier", "[laws]") {
  for (double const clip : {0., 1e-3, 0.35})  // never clipped, always, sometimes
    laws::same_runs<Barrier, Overlapping>(clip);
  for (int const bad : {0, 3, 6}) laws::same_runs<Barrier, Overlapping>(0.35, 0, bad);
  for (double const clip : {0., 0.35})
    same_as_with_a_barrier<Net, ZeroBubbleV, Stages<4>, MicroBatches<4>, GradientAccumulation<2>,
                           HostThreads<2>, Averaging<9, 10>>(clip, 0.05);
}
TEST_CASE("stages that several ranks hold join their accumulations", "[laws]") {
  for (double const clip : {0., 0.35})
    same_as_with_a_barrier<Net, Chimera, Stages<4>, MicroBatches<4>, GradientAccumulation<2>,
                           HostThreads<2>, Averaging<9, 10>>(clip);
  same_as_with_a_barrier<FollowingNet, OneFOneB, StageReplicas<1, 2>, MicroBatches<2>,
                         GradientAccumulation<4>>(0.3);
  same_as_with_a_barrier<TiedNet, OneFOneB, StageReplicas<1, 2>, MicroBatches<3>,
                         GradientAccumulation<2>>(0.15);
}
TEST_CASE("accumulations without samples add nothing where steps overlap", "[laws]") {
  trains_alike<Barrier, Overlapping>(few);
}
TEST_CASE("steps of accumulations without a flush have the bits of one stage", "[laws]") {
  // A stage alone reads what a step with a flush reads; with two versions, what all stages read.
  trains_alike<Four<>, Four<PipeDream<>>>(few);
  trains_alike<Four<>, Four<PACI<>>>(few);
  trains_alike<Four<PipeDream2BW<>>, Four<Stages<4>, PipeDream2BW<>>>(few);
}
TEST_CASE("what steps of accumulations need is planned", "[laws]") {
  // The partial sums are those of a step with a barrier: an accumulation is joined before the next
  // one.
  CHECK(Overlapping::plan().gradient_sum_bytes[0] == Barrier::plan().gradient_sum_bytes[0]);
  CHECK(Free::plan().gradient_sum_bytes[0] == Barrier::plan().gradient_sum_bytes[0]);
  // Eight micro-batches are a mini-batch, of which three are in flight behind the first stage.
  CHECK(Free::plan().stages[0].versions == 2);
  CHECK(Free::plan().stages[3].versions == 1);
  CHECK(Of<Net, Stages<4>, MicroBatches<2>, PipeDream<>>::plan().stages[0].versions == 3);
  using Large = Planned<Net, PortableHost, AdamW, MicroBatchSize<2>, Stages<4>, MicroBatches<2>,
                        GradientAccumulation<4>, PipeDream<>>;
  Overlapping steady;
  Free free;
  mini_batches<Overlapping> const data(7);
  steady.train(data.views());
  free.train(data.views<Free>());
  for (int r = 0; r < 4; ++r) {
    CHECK(steady.allocated_bytes(r) == Overlapping::plan().rank_bytes[r]);
    CHECK(free.allocated_bytes(r) == Free::plan().rank_bytes[r]);
    CHECK(Large::plan().rank_bytes[r] == Free::plan().rank_bytes[r]);
  }
}
