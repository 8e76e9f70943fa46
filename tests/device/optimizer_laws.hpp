// SPDX-License-Identifier: BSL-1.0
//
// Optimizers of whole tensors over the engine for a GPU: the bits of one stage under every cut and
// schedule, the host's steps, the memory that is planned, rejected steps, and graphs.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "laws/bit_law.hpp"

namespace laws {

using namespace pp;

/// Vectors, matrices that lie and stand, tables, one of them shared, groups, and what is frozen.
struct Mixed : Model<Tokens<11, 5>, Named<"table", Embedding<9>>,
                     Group<LearningRate<1, 2>, Positions, LayerNorm>, Linear<37>, GELUTanh,
                     Frozen<Linear<7>>, Linear<70, NoBias>, Tanh, Group<WeightDecay<0>, Linear<9>>,
                     Tied<"table">, CrossEntropy> {};

template <class Optimizer, class Precision, class... More>
using trained = Pipeline<Mixed, on_host::Device, Optimizer, Precision, Averaging<9, 10>,
                         MicroBatches<3>, MicroBatchSize<2>, More...>;

/// In one order of the device's streams and another.
template <class One, class Many>
void gives_the_bits_of(fake_gpu::preference p) {
  fake_gpu::gpu.prefers = p;
  laws::train_alike_from_the_start<One, Many>(7, 3, 1);
  fake_gpu::gpu.prefers = fake_gpu::preference::awaited;
}

/// Parameters after each of some steps, mini-batches accumulated before some of them.
template <class Optimizer, class device>
void steps_are_the_hosts(double tolerance) {
  using host = Pipeline<Mixed, PortableHost, Optimizer, MicroBatches<3>, MicroBatchSize<2>>;
  typename host::settings a{.seed = 5, .clip_value = 0.02, .clip_norm = 0.1};
  typename device::settings b{.seed = 5, .clip_value = 0.02, .clip_norm = 0.1};
  a.optimizer.learning_rate = b.optimizer.learning_rate = 0.01;
  host expected(a);
  device found(b);
  auto const start = laws::snapshot(found).values;
  for (int step = 0; step < 5; ++step) {
    INFO("step " << step);
    laws::sample_batch<host> const data(std::uint64_t(step) + 1);
    auto const ours = data.view(host::samples - step % 2);
    auto const theirs = data.template view<device>(host::samples - step % 2);
    double const rate = 0.02 / (1 + step);
    if (step == 2) expected.accumulate(ours), found.accumulate(theirs);
    CHECK(found.step(theirs, rate).loss == Approx(expected.step(ours, rate).loss).epsilon(1e-4));
    auto const x = laws::snapshot(expected).values, y = laws::snapshot(found).values;
    REQUIRE(x.size() == y.size());
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      most = std::fmax(most, std::fabs(double(x[i]) - double(y[i])));
    CHECK(most < tolerance);
  }
  auto const end = laws::snapshot(found).values;
  double moved = 0;
  for (std::size_t i = 0; i < end.size(); ++i)
    moved = std::fmax(moved, std::fabs(double(end[i]) - double(start[i])));
  CHECK(moved > 100 * tolerance);
}

template <class Trainer>
void asks_for_what_is_planned() {
  REQUIRE(fake_gpu::gpu.memory.empty());
  Trainer t;
  laws::sample_batch<Trainer> const data(1);
  t.step(data.view());
  auto const& plan = Trainer::plan;
  std::vector<long> sizes, planned(plan.rank_bytes.begin(), plan.rank_bytes.end());
  for (auto const& [at, size] : fake_gpu::gpu.memory) sizes.push_back(size);
  std::sort(sizes.begin(), sizes.end());
  std::sort(planned.begin(), planned.end());
  CHECK(sizes == planned);
}

/// A step that is rejected leaves all as it was.
template <class Optimizer>
void a_rejected_step_changes_nothing() {
  using trainer = trained<Optimizer, FP16, Stages<2>>;
  trainer t({.seed = 3});
  laws::sample_batch<trainer> const data(1);
  t.step(data.view());
  auto before = laws::snapshot(t).values;
  long const steps = t.steps();
  auto p = t.parameters();
  float const kept = p.back().values[0];
  p.back().values[0] = HUGE_VALF;
  t.parameters_changed();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(t.steps() == steps);
  t.parameters().back().values[0] = kept;
  t.parameters_changed();
  CHECK(laws::same_numbers(laws::snapshot(t).values, before));
  auto const after = t.step(data.view());
  CHECK_FALSE(after.skipped);
  CHECK(t.steps() == steps + 1);
  CHECK_FALSE(laws::same_numbers(laws::snapshot(t).values, before));
}

/// Later steps of the one are replays of a graph.
template <class Graph, class Streams>
void graphs_have_the_bits_of_streams() {
  Graph by_graph({.seed = 5, .clip_norm = 0.1});
  Streams by_streams({.seed = 5, .clip_norm = 0.1});
  CHECK(by_graph.runs_on().find("steps as CUDA graphs") != std::string::npos);
  for (int i = 0; i < 5; ++i) {
    laws::sample_batch<Graph> const data(std::uint64_t(i) + 1);
    auto const theirs = data.template view<Streams>();
    double const rate = 0.01 / (1 + i);
    CHECK(
        laws::same_bits(by_graph.step(data.view(), rate).loss, by_streams.step(theirs, rate).loss));
    CHECK(laws::same_numbers(laws::snapshot(by_graph).values, laws::snapshot(by_streams).values));
  }
}

/// In fp32: the host's steps, in one stage and in many.
template <class Optimizer>
void holds_in_fp32(double tolerance) {
  using one = trained<Optimizer, FP32>;
  using many = trained<Optimizer, FP32, Stages<6>, VHalf, RecomputeAll>;
  steps_are_the_hosts<Optimizer, many>(tolerance);
  gives_the_bits_of<one, many>(fake_gpu::preference::last);
  gives_the_bits_of<one, many>(fake_gpu::preference::first);
  asks_for_what_is_planned<many>();
}
/// In 16 bits, with copies of the parameters.
template <class Optimizer>
void holds_in_bf16() {
  using two = trained<Optimizer, BF16, Stages<2>, NoGraphs>;
  using three = trained<Optimizer, BF16, Stages<3>, GPipe>;
  gives_the_bits_of<two, three>(fake_gpu::preference::last);
  graphs_have_the_bits_of_streams<three, two>();
  asks_for_what_is_planned<three>();
}

}  // namespace laws
