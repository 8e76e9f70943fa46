// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch that is a tree of accumulations: GradientAccumulation.
#include <algorithm>
#include <string>

#include <pipe/plan/compiled/planned.hpp>

#include "laws/bit_law.hpp"
#include "laws/everything.hpp"
#include "laws/accumulation_law.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<3>, Linear<8>, Tanh, Linear<5>, Tanh, Linear<2>, MSE> {};
/// Accumulations of eight samples.
template <class M, class... More>
using Accumulation = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;
using Four = Accumulation<Net, GradientAccumulation<4>>;
using One = Accumulation<Net>;

}  // namespace

TEST_CASE("gradients and loss of accumulations are added in a balanced binary tree") {
  laws::accumulations_are_added_in_a_tree<Four, One>();
}
TEST_CASE("a mini-batch with too few samples is one of fewer accumulations") {
  laws::accumulations_without_samples_add_nothing<Four,
                                                  Accumulation<Net, GradientAccumulation<2>>>();
}
TEST_CASE("samples are numbered through the accumulations, for random bits too") {
  // The same mini-batch as one accumulation of as many micro-batches: equal but for the order of
  // sums.
  using Accumulations = Accumulation<laws::Everything, GradientAccumulation<4>>;
  using Whole =
      Pipeline<laws::Everything, PortableHost, AdamW, MicroBatches<16>, MicroBatchSize<2>>;
  static_assert(Accumulations::samples == Whole::samples &&
                Accumulations::plan.step_flops == Whole::plan.step_flops);
  Accumulations accumulations({.seed = 7});
  Whole whole({.seed = 7});
  laws::sample_batch<Accumulations> const data(7);
  auto const a = accumulations.gradients(data.view(25)), b = whole.gradients(data.view<Whole>(25));
  CHECK(a.loss == Approx(b.loss).epsilon(1e-12));
  auto const x = laws::snapshot(accumulations).gradients, y = laws::snapshot(whole).gradients;
  REQUIRE(x.size() == y.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(double(x[i]) - double(y[i])));
  CHECK(worst < 1e-5 * b.gradient_norm);
  CHECK(accumulations.evaluate(data.view()) ==
        Approx(whole.evaluate(data.view<Whole>())).epsilon(1e-12));
}
TEST_CASE("accumulations give the bits of one stage") {
  using Trained = Accumulation<laws::Everything, GradientAccumulation<4>>;
  laws::same_as_one_stage<Trained, Accumulation<laws::Everything, GradientAccumulation<4>,
                                                Stages<4>, Interleaved<2>, HostThreads<2>>>(2, 3,
                                                                                            15);
  laws::same_as_one_stage<
      Trained, Accumulation<laws::Everything, GradientAccumulation<4>, Stages<2>, ZeroBubbleH1>>();
}
TEST_CASE("partial sums are planned") {
  auto const& plan = Four::plan;
  CHECK(plan.gradient_sum_bytes[0] == 2 * One::plan.stages[0].gradient_bytes);
  CHECK(plan.rank_bytes_of(0, 1) == plan.rank_bytes[0]);
  CHECK(plan.rank_bytes_of(0, 2) == plan.rank_bytes[0] - One::plan.stages[0].gradient_bytes);
  CHECK(plan.rank_bytes_of(0, 4) == plan.rank_bytes[0] - 2 * One::plan.stages[0].gradient_bytes);
  long sum = 0;
  for (auto const& share : plan.memory_of(0)) sum += share.bytes;
  CHECK(sum == plan.rank_bytes[0]);
  CHECK(Four().allocated_bytes(0) == plan.rank_bytes[0]);
  CHECK(explain<Four>().find("sums") != std::string::npos);
  CHECK(explain<Four>().find("4 x 4 x 2 samples per step") != std::string::npos);
  using Large = Planned<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>,
                        GradientAccumulation<4>>;
  CHECK(Large::plan().rank_bytes[0] == plan.rank_bytes[0]);
}
TEST_CASE("a watcher and a message count micro-batches through the accumulations") {
  Four four;
  laws::sample_batch<Four> data(8);
  int last = -1;
  four.watch(data.view(),
             [&](launch_seen const& seen) { last = std::max(last, seen.micro_batch); });
  CHECK(last == 15);
  // 3e38 is finite, and its square in the loss is not.
  data.labels[std::size_t(21 * 2)] = 3e38f;
  CHECK_THROWS_WITH(four.step(data.view()), Catch::Contains("of micro-batch 10, stage 0"));
  CHECK(four.steps() == 0);
}
