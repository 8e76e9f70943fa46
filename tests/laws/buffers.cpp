// SPDX-License-Identifier: BSL-1.0
//
// Buffers: memory of a layer that a step writes once, from statistics of its mini-batch. The same
// bits under every schedule, cut, recomputation and number of threads, over a transport that copies
// as within the process.
#include "catch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "laws/buffers_of.hpp"
#include "laws/bit_law.hpp"
#include "laws/centered.hpp"
#include "laws/schedules.hpp"
#include "transport/messages.hpp"

#include <pipe/plan/compiled/planned.hpp>
#include <pipe/weights/copy_weights.hpp>
#include <pipe/weights/weights.hpp>

using namespace pp;
using laws::buffers_of;
using namespace pp::detail;
using laws::Centered, laws::sample_batch;

namespace {

struct Net : Model<Input<2, 3>, Custom<Centered>, Linear<4>, GELUTanh, Custom<Centered>, Linear<4>,
                   Custom<Centered>, Linear<2>, MSE> {};
/// The statistic of a position whose number is 0 is not finite, though all else is.
struct Logs : Centered {
  template <class T>
  static void statistics(custom::statistics<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i)
      a.sum[0][i % a.in.columns()] += T(std::log(std::fabs(double(a.x[i]))));
  }
};
struct WithLogs : Model<Input<2, 3>, Linear<4>, GELUTanh, Linear<3>, Custom<Logs>, MSE> {};

/// The frozen layer's buffer is a constant.
struct Kept : Model<Input<2, 3>, Frozen<Named<"kept", Custom<Centered>>>, Linear<4>,
                    Repeat<2, Custom<Centered>, Linear<4>>, Linear<2>, MSE> {};

template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;
using one = Of<>;

/// The first layer's buffer after a mini-batch of these samples, in double precision.
std::array<double, 3> followed(std::array<double, 3> m, std::vector<float> const& x, long samples) {
  double sum[3]{};
  for (long i = 0; i < samples * 6; ++i) sum[i % 3] += double(x[std::size_t(i)]);
  for (std::size_t c = 0; c < 3; ++c) m[c] += 0.25 * (sum[c] / double(2 * samples) - m[c]);
  return m;
}
template <class Trainer>
void check_first(Trainer& t, std::array<double, 3> const& expected) {
  auto const found = t.parameters()[0].values;
  for (std::size_t c = 0; c < 3; ++c) CHECK(double(found[c]) == Approx(expected[c]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("a step commits the mean of its mini-batch once", "[laws][buffers]") {
  one t({.seed = 3});
  auto const all = t.parameters();
  REQUIRE(all.size() == 9);
  CHECK(all[0].name == "0.running_mean");
  CHECK(all[0].file_shape == std::vector<long>{3});
  CHECK(all[0].gradients.empty());
  CHECK(buffers_of(t) == std::vector<float>(3 + 4 + 4));
  std::array<double, 3> m{};
  for (long samples : {8, 8, 5, 1}) {  // the last micro-batch may be partial, others absent
    sample_batch<one> const data(std::uint64_t(samples + 3));
    t.step(data.view(samples));
    m = followed(m, data.inputs, samples);
    check_first(t, m);
  }
}

TEST_CASE("samples that are filled up are in no statistic", "[laws][buffers]") {
  using single = Pipeline<Net, PortableHost, AdamW, MicroBatches<8>>;  // none is filled up
  one t({.seed = 3});
  single s({.seed = 3});
  sample_batch<one> const data(9);
  t.step(data.view(5));
  s.step(data.view<single>(5));
  auto const found = buffers_of(t), expected = buffers_of(s);
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-4));
}

TEST_CASE("what is no step writes no buffer", "[laws][buffers]") {
  laws::looking_changes_nothing<one>(4);
  one t({.seed = 4});
  sample_batch<one> data(5), other(6);
  t.step(data.view());
  auto const before = buffers_of(t);
  t.evaluate(other.view());
  t.gradients(other.view());
  t.accumulate(other.view());
  CHECK(buffers_of(t) == before);
  t.parameters_changed();  // forgets what was accumulated
  data.inputs[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(buffers_of(t) == before);
}

TEST_CASE("accumulated mini-batches are committed as one", "[laws][buffers]") {
  one t({.seed = 5});
  sample_batch<one> const first(7), second(8);
  t.accumulate(first.view());
  CHECK(buffers_of(t) == std::vector<float>(11));
  t.step(second.view(3));
  std::vector<float> x = first.inputs;
  x.insert(x.end(), second.inputs.begin(), second.inputs.begin() + 3 * 6);
  check_first(t, followed({}, x, 11));
}

TEST_CASE("buffers have the bits of one stage", "[laws][buffers]") {
  // Mini-batches of 8, 5 and 2 samples.
  constexpr int layers = Net::graph.size.units;
  laws::same_as_one_stage<one, Of<Stages<layers>, laws::LateWeights>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<3>, RecomputeAll>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<4>, Interleaved<2>, RecomputeAllButLast, HostThreads<2>>>(
      7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<4>, ZeroBubbleV, Recompute<op_kind::custom>>>(7, 3, 3);
  laws::same_as_one_stage<one, Of<Stages<4>, Messages, RecomputeAll>>(7, 3, 3);
}

TEST_CASE("a statistic that is not finite rejects its step", "[laws][buffers]") {
  Pipeline<WithLogs, PortableHost, AdamW, Stages<2>, MicroBatches<2>> t({.clip_value = 1e-3});
  sample_batch<decltype(t)> const data(3);
  auto const before = laws::snapshot(t).values;
  for (auto const& p : t.parameters())  // the last layer before the buffer makes zeros
    if (p.layer == 2) std::fill(p.values.begin(), p.values.end(), 0.0f);
  t.parameters_changed();
  auto const zeroed = laws::snapshot(t).values;
  CHECK_THROWS_WITH(t.step(data.view()),
                    Catch::Contains("first appears in backward of micro-batch 0, stage 1, layer"));
  CHECK(laws::same_numbers(laws::snapshot(t).values, zeroed));
  std::size_t at = 0;
  for (auto const& p : t.parameters()) {
    std::copy_n(before.begin() + std::ptrdiff_t(at), p.values.size(), p.values.begin());
    at += p.values.size();
  }
  t.parameters_changed();
  CHECK(std::isfinite(t.step(data.view()).loss));
  CHECK(buffers_of(t) != std::vector<float>(3));
}

TEST_CASE("buffers are named, saved, loaded and copied like parameters", "[laws][buffers]") {
  using kept = Pipeline<Kept, PortableHost, AdamW, Averaging<1, 2>>;
  kept t({.seed = 1});
  std::vector<std::string> names;
  for (auto const& p : t.parameters())
    if (p.gradients.empty()) names.push_back(p.name);
  CHECK(names ==
        std::vector<std::string>{"kept.running_mean", "2.0.0.running_mean", "2.1.0.running_mean"});
  auto const frozen = t.parameters()[0].values;
  std::fill(frozen.begin(), frozen.end(), 2.0f);
  t.parameters_changed();
  sample_batch<kept> const data(4);
  for (int i = 0; i < 2; ++i) t.step(data.view());
  auto const values = buffers_of(t);
  CHECK(std::vector<float>(values.begin(), values.begin() + 3) == std::vector<float>(3, 2.0f));
  for (std::size_t i = 3; i < values.size(); ++i) CHECK(values[i] != 0);

  auto const path = std::filesystem::temp_directory_path() / "pipe_buffers.safetensors";
  save_weights(t, path);
  kept loaded, copied;
  load_weights(loaded, path);
  copy_weights(t, copied);
  std::filesystem::remove(path);
  CHECK(buffers_of(loaded) == values);
  CHECK(buffers_of(copied) == values);
  // Averages have the buffers of the trainer.
  double const before = t.evaluate(data.view());
  t.swap_averages();
  CHECK(buffers_of(t) == values);
  CHECK(t.evaluate(data.view()) != before);
}

TEST_CASE("the plan counts buffers and their sums", "[laws][buffers]") {
  using options = option_set<PortableHost, AdamW, Stages<2>, MicroBatches<2>>;
  using compiled = compiled_pipeline<Kept, options>;
  constexpr auto const& plan = compiled::plan();
  static_assert(plan.buffers == 3 + 4 + 4);
  static_assert(plan.parameters == (3 * 4 + 4) + 2 * (4 * 4 + 4) + (4 * 2 + 2));
  static_assert(plan.parameters == plan.trained);
  long bytes = 0;  // each takes a whole number of cache lines, the frozen one has no sum
  for (stage_plan const& s : plan.stages) bytes += s.buffer_bytes;
  CHECK(bytes == (3 + 2) * 64);
  for (int rank = 0; rank < 2; ++rank) {
    long sum = 0;
    for (memory_share const& share : plan.memory_of(rank)) sum += share.bytes;
    CHECK(sum == plan.rank_bytes[rank]);
  }
  using made = Planned<Kept, PortableHost, AdamW, Stages<2>, MicroBatches<2>>;
  CHECK(made::plan().buffers == plan.buffers);
  for (int s = 0; s < 2; ++s) {
    CHECK(made::plan().stages[s].buffer_bytes == plan.stages[s].buffer_bytes);
    CHECK(made::plan().stages[s].bytes == plan.stages[s].bytes);
  }
  CHECK(explain<made>().find(" trained") == std::string::npos);
  CHECK(explain<made>().find("66 parameters, 11 in buffers") != std::string::npos);
  CHECK(explain<made>().find(" buffers ") != std::string::npos);
}
