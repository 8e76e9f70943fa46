// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches that are trees of accumulations, on devices: the laws of the host, and the same bits
// for every cut, schedule, number of devices, order of streams, by streams and as graphs, wherever
// the mini-batch comes from.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "device/centered.hpp"
#include "device/device_arrays.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"
#include "laws/accumulation_law.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;
using fake_gpu::several_devices;

struct Net : Model<Input<3>, Linear<8>, Tanh, Linear<5>, Tanh, Linear<2>, MSE> {};
struct Random : Model<Input<3>, Linear<8>, Dropout<1, 4>, Tanh, Linear<2>, MSE> {};
/// Accumulations of six samples.
template <class M, class... More>
using Accumulation = Pipeline<M, on_host::Device, MicroBatches<3>, MicroBatchSize<2>, More...>;
template <class... More>
using Four = Accumulation<Net, GradientAccumulation<4>, AdamW, More...>;

/// A buffer that follows statistics, matrices that are updated whole, a loss that is scaled.
struct Followed : Model<Input<2, 3>, Custom<on_host::Centered>, Linear<4>, Tanh,
                        Custom<on_host::Centered>, Linear<2>, MSE> {};
/// A layer that counts how many of its launches have not run yet.
struct Counted {
  static inline long enqueued = 0, done = 0, most_behind = 0;
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& a) {
    std::copy(a.x, a.x + a.samples * a.in.elements(), a.y);
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a) {
    std::copy(a.dy, a.dy + a.samples * a.in.elements(), a.dx);
  }
  template <class T>
  static void forward(custom::forward<T> const& a, cudaStream_t on) {
    most_behind = std::max(most_behind, ++enqueued - done);
    on->put([a] { forward(a), ++done; });
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a, cudaStream_t on) {
    on->put([a] { input_gradient(a); });
  }
};
struct Delayed : Model<Input<3>, Linear<4>, Custom<Counted>, Linear<2>, MSE> {};

template <class... More>
using Scaled =
    Accumulation<Followed, GradientAccumulation<4>, FP16, Muon, Averaging<9, 10>, More...>;

}  // namespace

TEST_CASE("gradients and loss of accumulations are added on a device in a balanced binary tree",
          "[cuda]") {
  // The terms of an accumulation must be a power of two.
  laws::accumulations_are_added_in_a_tree<
      Pipeline<Net, on_host::Device, MicroBatches<4>, MicroBatchSize<2>, GradientAccumulation<4>>,
      Pipeline<Net, on_host::Device, MicroBatches<4>, MicroBatchSize<2>>>();
}
TEST_CASE("a mini-batch with too few samples is one of fewer accumulations on a device", "[cuda]") {
  laws::accumulations_without_samples_add_nothing<
      Four<>, Accumulation<Net, GradientAccumulation<2>, AdamW>>();
}

TEST_CASE("accumulations on devices have the bits of one stage on one", "[cuda]") {
  several_devices const machine(4);
  using one = Accumulation<laws::Everything, BF16, AdamW, GradientAccumulation<2>>;
  using many = Accumulation<laws::Everything, BF16, AdamW, GradientAccumulation<2>, Stages<4>,
                            ZeroBubbleH1, RecomputeAllButLast, Devices<3>>;
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    gpu.prefers = p;
    laws::train_alike_from_the_start<one, many>(7, 2, 5);
  }
  gpu.prefers = preference::awaited;
  CHECK(gpu.foreign == 0);
}

TEST_CASE("buffers, whole matrices and averages follow the sum of accumulations", "[cuda]") {
  several_devices const machine(2);
  using one = Scaled<NoGraphs>;
  using many = Scaled<Stages<4>, ZeroBubbleV, Prefetching, Devices<2>>;  // two chunks for each rank
  one a({.seed = 5, .clip_value = 0.02, .clip_norm = 0.1});
  many b({.seed = 5, .clip_value = 0.02, .clip_norm = 0.1});
  int skipped = 0;
  std::vector<laws::sample_batch<one>> data;
  for (int i = 0; i < 5; ++i) {
    data.emplace_back(std::uint64_t(i) + 1);
    if (i > 2)
      for (float& y : data.back().labels) y *= 20000;  // overflows with the first loss scale
  }
  auto const length = [](int i) { return long(one::samples - i % 3 * 7); };
  b.prefetch(data[0].view<many>(length(0)));
  for (int i = 0; i < 5; ++i) {
    INFO("mini-batch " << i);
    if (i + 1 < 5) b.prefetch(data[std::size_t(i + 1)].view<many>(length(i + 1)));
    auto const x = a.step(data[std::size_t(i)].view(length(i))), y = b.step(prefetched);
    CHECK(laws::same_bits(x.loss, y.loss));
    CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
    CHECK(x.skipped == y.skipped);
    CHECK(x.loss_scale == y.loss_scale);
    skipped += x.skipped;
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
    a.swap_averages(), b.swap_averages();
    auto const other = data[0].view(length(i));
    CHECK(laws::same_bits(a.evaluate(other), b.evaluate(data[0].view<many>(length(i)))));
    a.swap_averages(), b.swap_averages();
  }
  CHECK(skipped == 2);
  CHECK(a.steps() == 3);
}

TEST_CASE("accumulations on a device have the numbers of the host", "[cuda]") {
  using host = Pipeline<Random, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                        GradientAccumulation<4>>;
  host expected({.seed = 3, .clip_norm = 0.1});
  Accumulation<Random, GradientAccumulation<4>, AdamW, Stages<2>> found(
      {.seed = 3, .clip_norm = 0.1});
  laws::copy_parameters(expected, found);
  for (int i = 0; i < 3; ++i) {
    laws::sample_batch<host> const data(std::uint64_t(i) + 1);
    long const samples = host::samples - i * 5;
    auto const a = expected.step(data.view(samples));
    auto const b = found.step(data.view<decltype(found)>(samples));
    CHECK(b.loss == Approx(a.loss).epsilon(1e-5));
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(1e-5));
  }
}

TEST_CASE("arrays in device memory are cut into accumulations", "[cuda]") {
  using trainer = Four<BF16, Stages<2>>;
  trainer a({.seed = 3}), b({.seed = 3});
  std::vector<float> expected(std::size_t(trainer::samples * trainer::outputs_per_sample)),
      found = expected;
  for (int i = 0; i < 3; ++i) {
    laws::sample_batch<trainer> const data(std::uint64_t(i) + 1);
    on_host::device_copy<trainer> const device(data.view());
    CHECK(laws::same_bits(a.step(data.view()).loss, b.step(device.view()).loss));
    CHECK(laws::same_bits(a.evaluate(data.view()), b.evaluate(device.view())));
    a.forward(data.view(), expected);
    on_host::device_array<float> outputs(found.size());
    b.forward(device.view(), outputs.view());
    CHECK(laws::same_numbers(outputs.read(), expected));
    b.forward(device.view(), found);
    CHECK(laws::same_numbers(found, expected));
  }
  CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
}

TEST_CASE("accumulations that are joined alike are one graph", "[cuda]") {
  using trainer = Accumulation<Net, GradientAccumulation<8>, Stages<2>>;
  trainer t({.seed = 3}), by_streams({.seed = 3, .runtime = {.timeline = true}});
  laws::sample_batch<trainer> const data(1);
  gpu.captures = gpu.graph_launches = 0;
  for (int i = 0; i < 4; ++i) {
    CHECK(laws::same_bits(t.step(data.view()).loss, by_streams.step(data.view()).loss));
    CHECK(laws::same_bits(t.evaluate(data.view()), by_streams.evaluate(data.view())));
  }
  // With 0, 1 and 2 levels, and the last.
  CHECK(gpu.captures == 2 * 4);
  CHECK(gpu.graphs == 2 * 4);
  // By streams ran the first of each shape.
  CHECK(gpu.graph_launches == 2 * (4 * 8 - 4));
  CHECK(laws::same_numbers(laws::snapshot(t).values, laws::snapshot(by_streams).values));
}

TEST_CASE("an accumulation is enqueued while the one before it runs", "[cuda]") {
  using trainer = Accumulation<Delayed, GradientAccumulation<4>, Prefetching>;
  laws::sample_batch<trainer> const data(1);
  for (bool const is_timed : {false, true}) {
    trainer t({.runtime = {.timeline = is_timed}});
    Counted::most_behind = 0;
    t.prefetch(data.view());
    t.step(prefetched);
    CHECK(Counted::done == Counted::enqueued);
    CHECK(Counted::most_behind == (is_timed ? 3 : 2 * 3));
  }
}

TEST_CASE("partial sums on a device are planned", "[cuda]") {
  REQUIRE(gpu.memory.empty());
  using trainer = Accumulation<Net, GradientAccumulation<8>, Stages<2>, Prefetching>;
  using one = Accumulation<Net, Stages<2>>;
  trainer t;
  laws::sample_batch<trainer> const data(1);
  t.prefetch(data.view()), t.prefetch(data.view());
  t.step(prefetched), t.step(prefetched);
  std::vector<long> found, planned;
  for (auto const& [at, bytes] : gpu.memory) found.push_back(bytes);
  for (int r = 0; r < 2; ++r) {
    planned.push_back(trainer::plan.rank_bytes[r]);
    CHECK(trainer::plan.gradient_sum_bytes[r] == 3 * one::plan.stages[r].gradient_bytes);
  }
  std::sort(found.begin(), found.end()), std::sort(planned.begin(), planned.end());
  CHECK(found == planned);
}

TEST_CASE("a number that is not finite in one accumulation rejects the step on a device",
          "[cuda]") {
  using trainer = Four<Prefetching>;
  laws::sample_batch<trainer> const data(1), next(2);
  laws::sample_batch<trainer> overflows(3), bad(4);
  // 3e38 is finite, and its square in the loss is not.
  overflows.labels[std::size_t(9 * 2)] = 3e38f;
  bad.inputs[std::size_t(7 * 3)] = std::numeric_limits<float>::quiet_NaN();
  trainer plain({.seed = 3}), troubled({.seed = 3});
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH(troubled.step(overflows.view()),
                      Catch::Contains("of micro-batch 4, stage 0"));
    // The next one has come when the step is rejected.
    troubled.prefetch(overflows.view()), troubled.prefetch(next.view());
    CHECK_THROWS_WITH(troubled.step(prefetched), Catch::Contains("of micro-batch 4, stage 0"));
    CHECK(laws::same_bits(troubled.evaluate(prefetched), plain.evaluate(next.view())));
    troubled.prefetch(bad.view()), troubled.prefetch(next.view());
    CHECK_THROWS_WITH(troubled.step(prefetched),
                      Catch::Contains("inputs: nan at position 21 (sample 7)"));
    CHECK(laws::same_bits(troubled.step(prefetched).loss, plain.step(next.view()).loss));
    CHECK(laws::same_numbers(laws::snapshot(troubled).values, laws::snapshot(plain).values));
  }
  CHECK(troubled.steps() == 2);
  int last = -1;
  troubled.watch(data.view(),
                 [&](launch_seen const& seen) { last = std::max(last, seen.micro_batch); });
  CHECK(last == 11);
}

TEST_CASE("whichever call of CUDA fails in an accumulation, the step is whole or not", "[cuda]") {
  using trainer = Four<Stages<2>, NoGraphs>;
  laws::sample_batch<trainer> const data(1), other(2);
  trainer plain({.seed = 3});
  double const before = plain.evaluate(data.view());
  trainer troubled({.seed = 3});
  long rejected = 0, broken = 0;
  for (long call = 0;; call += 11) {
    gpu.failing = gpu.calls + call;
    bool failed = false;
    try {
      troubled.step(other.view());
    } catch (error const&) {
      failed = true;
      CHECK(gpu.is_idle());
    }
    gpu.failing = -1;
    if (!failed) break;
    try {
      double const now = troubled.evaluate(data.view());  // throws if broken
      CHECK(laws::same_bits(now, before));
      ++rejected;
    } catch (error const& e) {
      CHECK(std::string(e.what()).find("broken") != std::string::npos);
      ++broken;
      troubled = trainer({.seed = 3});
    }
    CHECK(troubled.steps() == 0);
  }
  CHECK(rejected > 20);
  CHECK(broken > 0);
  CHECK(troubled.step(data.view()).loss > 0);
}
