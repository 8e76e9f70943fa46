// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap, each confirmed by the first backward of the next one: results, parameters,
// averages and errors of steps with a barrier, bit for bit, whatever has to be taken back.
#include "catch.hpp"

#include <cstddef>
#include <stdexcept>
#include <vector>

#include "laws/centered.hpp"
#include "laws/overlap_law.hpp"

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;
using laws::mini_batches, laws::same_numbers, laws::snapshot;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELUTanh, Linear<8>, Dropout<1, 5>, GELUTanh, Linear<8>,
                   GELUTanh, Linear<4>, MSE> {};
/// A parameter in the first and the last stage, and one that no step changes.
struct TiedNet : Model<Tokens<9, 4>, Named<"table", Embedding<8>>, Residual<LayerNorm, Linear<8>>,
                       Frozen<Linear<8>>, GELUTanh, Linear<8>, Tied<"table">, CrossEntropy> {};
/// Buffers that follow the data.
struct FollowingNet : Model<Input<2, 3>, Custom<laws::Centered>, Linear<4>, GELUTanh, BatchNorm,
                            Linear<4>, Custom<laws::Centered>, Linear<2>, MSE> {};

/// The law for model M under S, and under S without a barrier.
template <class M, class S, class... Options>
void same_as_with_a_barrier(double clip_norm, double clip_value = 0, int bad = -1) {
  laws::same_runs<Pipeline<M, S, AdamW, MicroBatchSize<2>, Options...>,
                  Pipeline<M, Steady<S>, AdamW, MicroBatchSize<2>, Options...>>(clip_norm,
                                                                                clip_value, bad);
}

}  // namespace

TEMPLATE_TEST_CASE("steps that overlap have the bits of steps with a barrier", "[laws]", GPipe,
                   OneFOneB, EagerOneFOneB, ZeroBubbleH1, ZeroBubbleH2) {
  // Never clipped; always; sometimes.
  for (double const clip : {0., 1e-3, 0.35}) {
    same_as_with_a_barrier<Net, TestType, Stages<4>, MicroBatches<4>>(clip);
    same_as_with_a_barrier<Net, TestType, Stages<2>, MicroBatches<8>, Averaging<9, 10>>(clip, 0.05);
  }
}
TEMPLATE_TEST_CASE("stages that share ranks overlap steps, too", "[laws]", ZeroBubbleV, VHalf,
                   (Interleaved<2>), Hanayo<>, DualPipeV) {
  for (double const clip : {0., 0.35})
    same_as_with_a_barrier<Net, TestType, Stages<4>, MicroBatches<4>, HostThreads<2>>(clip);
}
TEST_CASE("stages that several ranks hold overlap steps, too", "[laws]") {
  for (double const clip : {0., 0.35}) {
    same_as_with_a_barrier<Net, OneFOneB, StageReplicas<1, 3, 1>, MicroBatches<4>>(clip);
    same_as_with_a_barrier<Net, GPipe, StageReplicas<2, 3>, MicroBatches<5>, Averaging<9, 10>>(
        clip);
    same_as_with_a_barrier<Net, Chimera, Stages<4>, MicroBatches<6>>(clip);
    same_as_with_a_barrier<Net, DualPipe, Stages<4>, MicroBatches<8>, HostThreads<2>>(clip);
  }
  for (int const bad : {0, 2, 5})
    same_as_with_a_barrier<Net, Chimera, Stages<4>, MicroBatches<4>>(0, 0, bad);
  same_as_with_a_barrier<FollowingNet, OneFOneB, StageReplicas<1, 2>, MicroBatches<4>>(0.3);
}
TEST_CASE("steps overlap with recomputation, and in one stage", "[laws]") {
  same_as_with_a_barrier<Net, OneFOneB, Stages<4>, MicroBatches<4>, RecomputeAll>(0.35);
  same_as_with_a_barrier<Net, OneFOneB, Stages<4>, MicroBatches<4>, RecomputeAllButLast>(0);
  same_as_with_a_barrier<Net, ZeroBubbleH1, Stages<4>, MicroBatches<1>>(0.35);
  same_as_with_a_barrier<Net, OneFOneB, Stages<1>, MicroBatches<3>>(0.35);
}
TEST_CASE("shared parameters and frozen layers keep up where steps overlap", "[laws]") {
  // Norms are from 0.1 to 0.14.
  for (double const clip : {0., 0.05, 0.12}) {
    same_as_with_a_barrier<TiedNet, OneFOneB, Stages<3>, MicroBatches<4>, Averaging<9, 10>>(clip);
    same_as_with_a_barrier<TiedNet, ZeroBubbleV, Stages<4>, MicroBatches<4>>(clip);
  }
}
TEST_CASE("buffers follow the data where steps overlap", "[laws]") {
  for (double const clip : {0., 0.3})
    same_as_with_a_barrier<FollowingNet, OneFOneB, Stages<3>, MicroBatches<4>>(clip);
}
TEST_CASE("optimizers of whole tensors overlap steps", "[laws]") {
  using with = Pipeline<Net, Muon, Stages<4>, MicroBatches<4>, MicroBatchSize<2>>;
  using without = Pipeline<Net, Muon, Stages<4>, MicroBatches<4>, MicroBatchSize<2>, Steady<>>;
  with a({.clip_norm = 0.35});
  without b({.clip_norm = 0.35});
  mini_batches<with> const all(6);
  laws::history x, y;
  x.train(a, all.views());
  y.train(b, all.views<without>());
  CHECK(x.numbers == y.numbers);
  CHECK(same_numbers(snapshot(a).values, snapshot(b).values));
}
TEST_CASE("a step that is not finite is taken back at every place", "[laws]") {
  for (int bad = 0; bad < 7; ++bad) {
    same_as_with_a_barrier<Net, OneFOneB, Stages<4>, MicroBatches<4>>(0, 0, bad);
    same_as_with_a_barrier<Net, ZeroBubbleV, Stages<4>, MicroBatches<4>, Averaging<9, 10>>(0.35, 0,
                                                                                           bad);
    same_as_with_a_barrier<Net, OneFOneB, Stages<1>, MicroBatches<3>>(1e-3, 0, bad);
  }
}

TEST_CASE("training ends where it is told to, or where the data do", "[train]") {
  using Trainer = Pipeline<Net, Steady<>, AdamW, Stages<4>, MicroBatches<4>, MicroBatchSize<2>>;
  mini_batches<Trainer> const all(9);
  auto const batches = all.views();
  Trainer trainer;
  int seen = 0;
  long const steps = trainer.train(batches, [&](step_result const&) { return ++seen < 3; });
  // Those that had begun are seen, too.
  CHECK(steps == seen);
  CHECK(steps == trainer.steps());
  CHECK((steps >= 3 && steps < 9));
  CHECK(trainer.train(std::vector<Trainer::batch>{}) == 0);
  CHECK(trainer.train(batches) == 9);

  Trainer other;
  std::size_t const n = std::size_t(steps);
  other.train(std::vector<Trainer::batch>(batches.begin(), batches.begin() + std::ptrdiff_t(n)));
  other.train(batches);
  CHECK(same_numbers(snapshot(trainer).values, snapshot(other).values));
}
TEST_CASE("what a callback or the data throw comes out after the steps before", "[train]") {
  using Trainer = Pipeline<Net, Steady<>, AdamW, Stages<4>, MicroBatches<4>, MicroBatchSize<2>>;
  mini_batches<Trainer> const all(6);
  auto const batches = all.views();
  Trainer trainer, plain;
  CHECK_THROWS_AS(trainer.train(batches, [](step_result const&) { throw std::logic_error("x"); }),
                  std::logic_error);
  long const done = trainer.steps();
  CHECK((done >= 1 && done <= 4));
  auto wrong = batches;
  wrong[2].labels = wrong[2].labels.first(1);
  CHECK_THROWS_AS(trainer.train(wrong), data_error);
  CHECK(trainer.steps() == done + 2);
  for (long i = 0; i < done + 2; ++i) plain.step(batches[std::size_t(i < done ? i : i - done)]);
  CHECK(same_numbers(snapshot(trainer).values, snapshot(plain).values));
}
