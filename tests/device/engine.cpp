// SPDX-License-Identifier: BSL-1.0
//
// The engine for a GPU on the CPU: cuts, schedules, precisions and the order in which a device
// takes its streams change no bit; losses are the host's; a loss scale that is too large costs
// steps and nothing else.
#include <algorithm>
#include <map>
#include <vector>

#include "device/device.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"
#include "laws/scaled_layer.hpp"

using namespace pp;

namespace {

template <class Precision, class... More>
using Trained = Pipeline<laws::Everything, on_host::Device, Precision, AdamW, MicroBatches<4>,
                         MicroBatchSize<2>, More...>;

/// Whatever a device prefers.
template <class Precision, class... More>
void gives_the_bits_of_one_stage() {
  using fake_gpu::preference;
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    fake_gpu::gpu.prefers = p;
    laws::train_alike_from_the_start<Trained<Precision>, Trained<Precision, More...>>(7, 2, 3);
  }
  fake_gpu::gpu.prefers = preference::awaited;
}

/// Numbers in, numbers out: both are float for the user.
struct Regression : Model<Input<5>, Linear<12>, ReLU, Linear<12>, RMSNorm, SiLU, Linear<3>, MSE> {};
/// A user's layer, whose functions put on a stream what runs on it: y = x * (1 + factor[c])^2, so
/// that the gradient of the factor reads the factor.
struct Scaled : laws::Scaled {
  static inline long launches_left = -1;  // before one throws
  using laws::Scaled::forward, laws::Scaled::input_gradient, laws::Scaled::weight_gradient;
  template <class T>
  static void forward(custom::forward<T> const& a, cudaStream_t on) {
    if (launches_left-- == 0) throw 1;
    on->put([a] { forward(a); });
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& a, cudaStream_t on) {
    on->put([a] { input_gradient(a); });
  }
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const& a, cudaStream_t on) {
    on->put([a] { weight_gradient(a); });
  }
};
struct WithOwn : Model<Input<5>, Linear<12>, Custom<Scaled>, Linear<3>, MSE> {};
/// A chain that runs as one kernel, and as its launches where somebody watches.
struct Narrow : Model<Input<24>, Linear<40>, ReLU, Linear<40>, GELUTanh, Linear<10>, MSE> {};
/// Angles of rotations keep their bits.
struct Rotated : Model<Tokens<11, 6>, Embedding<8>, Residual<RMSNorm, Attention<2, RoPE<>>>,
                       Linear<11>, CrossEntropy> {};

double distance(std::vector<float> const& a, std::vector<float> const& b) {
  double most = 0, scale = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return HUGE_VAL;
    most = std::fmax(most, std::fabs(double(a[i]) - double(b[i])));
    scale = std::fmax(scale, std::fabs(double(a[i])));
  }
  return most / scale;
}

/// From the same weights in every step: outputs, loss and gradients.
template <class Trainer>
void agrees_with_the_host(double tolerance) {
  using host = Pipeline<typename Trainer::model, PortableHost, AdamW,
                        MicroBatches<Trainer::plan.micro_batches>,
                        MicroBatchSize<Trainer::plan.micro_batch_size>>;
  host expected({.seed = 5});
  Trainer found({.seed = 5});
  laws::disturb(expected, 3, 0.3);
  for (int step = 0; step < 4; ++step) {
    laws::copy_parameters(expected, found);
    laws::sample_batch<host> const data(std::uint64_t(step) + 1);
    auto const ours = data.view(host::samples - step);
    auto const theirs = data.template view<Trainer>(host::samples - step);
    INFO("step " << step << " in " << Trainer::plan.precision);
    std::vector<float> x(std::size_t((host::samples - step) * host::outputs_per_sample)),
        y(x.size());
    expected.forward(ours, x);
    found.forward(theirs, y);
    CHECK(distance(x, y) < tolerance);
    auto const a = expected.gradients(ours);
    auto b = found.gradients(theirs);
    while (b.skipped) b = found.gradients(theirs);
    CHECK(b.loss == Approx(a.loss).epsilon(tolerance));
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(tolerance));
    CHECK(distance(laws::snapshot(expected).gradients, laws::snapshot(found).gradients) <
          2 * tolerance);
    CHECK(found.evaluate(theirs) == Approx(expected.evaluate(ours)).epsilon(tolerance));
    expected.step(ours);
    found.step(theirs);
  }
}

}  // namespace

TEST_CASE("streams give the bits of one stage in fp32", "[cuda]") {
  gives_the_bits_of_one_stage<FP32, Stages<8>, VHalf, RecomputeAllButLast>();
}
TEST_CASE("streams give the bits of one stage in 16 bits", "[cuda]") {
  gives_the_bits_of_one_stage<BF16, Stages<8>, ZeroBubbleV, RecomputeAll>();
}

TEST_CASE("outputs, losses and gradients are the host's in every precision", "[cuda]") {
  agrees_with_the_host<Trained<FP32>>(2e-5);
  agrees_with_the_host<Trained<BF16>>(5e-2);
  agrees_with_the_host<Pipeline<Regression, on_host::Device, FP16, Stages<2>, MicroBatchSize<6>>>(
      1e-2);
  agrees_with_the_host<Pipeline<Regression, on_host::Device, TF32, Stages<2>, MicroBatchSize<6>>>(
      4e-3);
  agrees_with_the_host<Pipeline<Regression, on_host::Device, BF16, Stages<2>, MicroBatchSize<6>>>(
      4e-2);
  agrees_with_the_host<Pipeline<Rotated, on_host::Device, BF16, MicroBatchSize<4>>>(4e-2);
}

TEST_CASE("layers of a user's own run on streams", "[cuda]") {
  agrees_with_the_host<
      Pipeline<WithOwn, on_host::Device, FP32, Stages<3>, MicroBatches<3>, MicroBatchSize<2>>>(
      1e-5);
  agrees_with_the_host<
      Pipeline<WithOwn, on_host::Device, BF16, Stages<2>, MicroBatches<3>, MicroBatchSize<2>>>(
      3e-2);
}

TEST_CASE("narrow layers as one kernel give the bits of their launches", "[cuda]") {
  using trainer = Pipeline<Narrow, on_host::Device, BF16, MicroBatches<2>, MicroBatchSize<70>>;
  using without =
      Pipeline<Narrow, on_host::DeviceWithoutChains, BF16, MicroBatches<2>, MicroBatchSize<70>>;
  trainer together({.seed = 3});
  without apart({.seed = 3});
  laws::sample_batch<trainer> const data(1);
  STATIC_REQUIRE(trainer::compiled::chain_kernels().count == 2);
  STATIC_REQUIRE(without::compiled::chain_kernels().count == 0);
  auto const& plan = trainer::plan().stages[0];
  CHECK(plan.forward_kernels < without::plan().stages[0].forward_kernels);
  CHECK(plan.backward_kernels < without::plan().stages[0].backward_kernels);
  // gradients that go from layer to layer have no place in memory
  CHECK(trainer::compiled::passes::programs<0, false, trainer::compiled::work::chains>::layout.bytes
            .scratch < trainer::compiled::passes::programs<0, false>::layout.bytes.scratch);
  auto const a = together.gradients(data.view()), b = apart.gradients(data.view());
  CHECK(laws::same_bits(a.loss, b.loss));
  CHECK(laws::same_numbers(laws::snapshot(together).gradients, laws::snapshot(apart).gradients));

  // a watcher sees a chain as one launch, with what it has left in memory
  int chains = 0;
  together.watch(data.view(), [&](launch_seen const& seen) {
    chains += seen.what->group >= trainer::compiled::groups;
    CHECK(seen.all_finite());
    for (int k = 0; k < seen.what->count; ++k)
      CHECK((seen.operands[k].elements == 0 || seen.values(k) != nullptr));
  });
  CHECK(chains == 2);  // backward of each micro-batch, which has the loss

  // a device whose blocks have too little shared memory is refused
  fake_gpu::gpu.shared_bytes = 16 * 1024;
  CHECK_THROWS_WITH(trainer(), Catch::Contains("bytes of shared memory"));
  fake_gpu::gpu.shared_bytes = 227 * 1024;
}

TEST_CASE("gradients of a scaled loss are those of the loss", "[cuda]") {
  Pipeline<Regression, PortableHost> expected({.seed = 3});
  Pipeline<Regression, on_host::Device, FP16> found({.seed = 3});
  laws::sample_batch<decltype(expected)> const data(1);
  expected.gradients(data.view());
  auto const r = found.gradients(data.view<decltype(found)>());
  CHECK(r.loss_scale == 65536);
  auto const a = laws::snapshot(expected).gradients, b = laws::snapshot(found).gradients;
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(b[i] == Approx(a[i]).epsilon(1e-2).margin(2e-3));
}

TEST_CASE("a step whose gradients overflow is skipped, and the next has a smaller scale",
          "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  trainer t({.seed = 3});
  laws::sample_batch<trainer> data(1);
  for (auto& label : data.labels)
    label = 40;  // gradients of about 20 * 65536 overflow, of 20 * 2048 do not
  auto const before = laws::snapshot(t).values;
  auto r = t.step(data.view());
  double scale = 65536;
  int skipped = 0;
  for (; r.skipped; r = t.step(data.view()), ++skipped) {
    CHECK(r.loss_scale == scale);
    CHECK(std::isfinite(r.loss));
    CHECK_FALSE(std::isfinite(r.gradient_norm));
    CHECK(t.steps() == 0);
    CHECK(laws::same_numbers(laws::snapshot(t).values, before));
    scale /= 2;
    REQUIRE(skipped < 16);
  }
  CHECK(skipped > 0);
  CHECK(r.loss_scale == scale);
  CHECK(t.steps() == 1);
  CHECK_FALSE(laws::same_numbers(laws::snapshot(t).values, before));
}

TEST_CASE("a callback that throws leaves nothing under way and nothing changed", "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  trainer plain({.seed = 3}), troubled({.seed = 3});
  laws::sample_batch<trainer> const data(1), other(2);
  fake_gpu::gpu.prefers = fake_gpu::preference::last;
  long thrown = 0;
  for (bool throws = true; throws; thrown += throws) {
    long left = thrown;
    throws = false;
    try {
      troubled.watch(other.view(), [&](launch_seen const&) {
        if (left-- == 0) throw 1;
      });
    } catch (int) {
      throws = true;
      CHECK(fake_gpu::gpu.is_idle());
    }
    CHECK(laws::same_bits(plain.step(data.view()).loss, troubled.step(data.view()).loss));
  }
  fake_gpu::gpu.prefers = fake_gpu::preference::awaited;
  CHECK(thrown > 4);
  CHECK(laws::same_numbers(laws::snapshot(plain).values, laws::snapshot(troubled).values));
}

TEST_CASE("a launch of a user's own that throws leaves nothing under way and nothing changed",
          "[cuda]") {
  using trainer = Pipeline<WithOwn, on_host::Device, FP32, Stages<3>, MicroBatches<3>,
                           MicroBatchSize<2>, NoGraphs>;
  trainer plain({.seed = 3}), troubled({.seed = 3});
  laws::sample_batch<trainer> const data(1), other(2);
  for (long launches = 0; launches < 3; ++launches) {
    Scaled::launches_left = launches;
    CHECK_THROWS_AS(troubled.step(other.view()), int);
    CHECK(fake_gpu::gpu.is_idle());
    Scaled::launches_left = -1;
    CHECK(laws::same_bits(plain.step(data.view()).loss, troubled.step(data.view()).loss));
  }
  CHECK(laws::same_numbers(laws::snapshot(plain).values, laws::snapshot(troubled).values));
}

TEST_CASE(
    "whichever call of CUDA fails, a step is done as a whole, or not at all, or the trainer says "
    "that it is broken",
    "[cuda]") {
  using trainer =
      Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>, NoGraphs>;
  laws::sample_batch<trainer> const data(1), other(2);
  std::vector<float> outputs(std::size_t(trainer::samples * trainer::outputs_per_sample)),
      expected(outputs.size());
  trainer plain({.seed = 3});
  double const before = plain.evaluate(data.view());
  plain.step(data.view());
  double const loss = plain.step(data.view()).loss;
  plain.forward(data.view(), expected);
  trainer troubled({.seed = 3});
  long rejected = 0, broken = 0;
  auto const fails = [&](long call, auto const& f) {
    fake_gpu::gpu.failing = fake_gpu::gpu.calls + call;
    bool failed = false;
    try {
      f();
    } catch (error const&) {
      failed = true;
      CHECK(fake_gpu::gpu.is_idle());
    }
    fake_gpu::gpu.failing = -1;
    return failed;
  };
  for (long call = 0; fails(call, [&] { troubled.step(other.view()); }); ++call) {
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
  CHECK(rejected > 40);
  CHECK(broken > 2);
  CHECK(broken < rejected);
  troubled = trainer({.seed = 3});
  for (long call = 0; call < rejected / 2; call += 7)
    CHECK(fails(call, [&] { troubled.step(other.view()); }));
  troubled.step(data.view());
  CHECK(laws::same_bits(troubled.step(data.view()).loss, loss));
  long call = 0;
  while (fails(call, [&] { troubled.forward(data.view(), outputs); })) ++call;
  CHECK(call > 10);
  CHECK(laws::same_numbers(outputs, expected));
}

TEST_CASE("a run of which nobody asks for times has none", "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  laws::sample_batch<trainer> const data(1);
  std::vector<float> outputs(std::size_t(trainer::samples * trainer::outputs_per_sample));
  trainer silent({.seed = 3}), timed({.seed = 3, .runtime = {.timeline = true}});
  auto& count = fake_gpu::gpu.count;
  CHECK(silent.executed(0).empty());
  count = {};
  CHECK(std::isnan(silent.step(data.view()).bubble));
  silent.evaluate(data.view());
  silent.forward(data.view(), outputs);
  CHECK(count.timings == 0);
  CHECK(count.timed_records == 0);
  CHECK_THROWS_WITH(silent.executed(0), Catch::Contains("settings.runtime.timeline"));
  silent.watch(data.view(), [](launch_seen const&) {});
  CHECK(silent.executed(0).size() == 4);  // two micro-batches forward and backward
  CHECK(timed.step(data.view()).bubble <= 1);
  CHECK(timed.executed(1).size() == 4);
}

TEST_CASE("a watcher of times downloads nothing, a search for what is not finite some flags",
          "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  laws::sample_batch<trainer> const data(1);
  trainer t({.seed = 3});
  auto& count = fake_gpu::gpu.count;
  count = {};
  t.gradients(data.view());
  auto const without = count;
  long launches = 0, nanoseconds = 0;
  count = {};
  t.watch(data.view(),
          [&](launch_seen const& seen) { ++launches, nanoseconds += seen.nanoseconds; });
  CHECK(count.downloads == without.downloads);
  CHECK(count.downloaded == without.downloaded);
  CHECK(nanoseconds > 0);
  count = {};
  t.watch(data.view(), [](launch_seen const& seen) { CHECK(seen.all_finite()); });
  CHECK(count.downloads == without.downloads + launches);
  count = {};
  t.watch(data.view(), [](launch_seen const& seen) {
    for (int k = 0; k < seen.what->count; ++k) seen.values(k), seen.values(k);
  });
  CHECK(count.downloads > without.downloads);
  CHECK(count.downloads <= without.downloads + 4 * launches);
}

namespace {

/// What a trainer says of a step with huge weights in layer `layer`, but for the stage.
template <class Trainer>
std::string fault_of(int layer) {
  Trainer t({.seed = 3});
  for (auto& p : t.parameters())
    if (p.layer == layer)
      for (float& x : p.values) x = 3e38f;
  t.parameters_changed();
  laws::sample_batch<Trainer> const data(1);
  try {
    t.step(data.view());
  } catch (not_finite const& e) {
    std::string text = e.what();
    if (std::size_t const at = text.find("stage "); at != std::string::npos) text.erase(at, 7);
    return text;
  }
  return "";
}

}  // namespace

TEST_CASE("what is not finite is found where the host finds it", "[cuda]") {
  // A chain has no values between its layers in memory: the first two Linear layers are one.
  using device = Pipeline<Regression, on_host::Device, TF32, Stages<2>, MicroBatchSize<6>>;
  using host = Pipeline<Regression, PortableHost, AdamW, MicroBatches<device::plan.micro_batches>,
                        MicroBatchSize<6>>;
  for (int layer : {0, 2, 3, 5}) {
    std::string const expected = fault_of<host>(layer);
    CHECK(expected.find("first appears in") != std::string::npos);
    std::string found = fault_of<device>(layer);
    std::string const in_chain =
        "in one of layers 0 (Linear<12>) to 2 (Linear<12>), which are one "
        "kernel";
    if (std::size_t const at = found.find("in one of layers"); at != std::string::npos) {
      CHECK(layer <= 2);
      CHECK(found.substr(at) == in_chain);
      found = found.substr(0, at) + "layer " + std::to_string(layer) + " (Linear<12>)";
    }
    CHECK(found == expected);
  }
}

TEST_CASE("outputs are downloaded into pinned memory, by calls that do not wait", "[cuda]") {
  using trainer =
      Pipeline<WithOwn, on_host::Device, FP32, Stages<3>, MicroBatches<3>, MicroBatchSize<2>>;
  using half = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  auto const check = []<class Trainer>(Trainer t) {
    laws::sample_batch<Trainer> const data(1);
    std::vector<float> outputs(std::size_t(Trainer::samples * Trainer::outputs_per_sample));
    fake_gpu::gpu.count = {};
    t.forward(data.view(), outputs);
    CHECK(fake_gpu::gpu.count.downloads == Trainer::plan.micro_batches);
    CHECK(fake_gpu::gpu.count.pageable == 0);
  };
  check(trainer{});
  check(half{});
}

TEST_CASE("a step is rejected if no scale could help", "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, FP16, AdamW, Stages<2>, MicroBatches<2>>;
  trainer t({.seed = 3});
  laws::sample_batch<trainer> const data(1);
  t.step(data.view());
  t.parameters().back().values[0] = HUGE_VALF;
  t.parameters_changed();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(t.steps() == 1);
}

TEST_CASE("accumulated mini-batches are scaled alike", "[cuda]") {
  using one = Pipeline<Regression, on_host::Device, FP16, MicroBatches<4>>;
  using parts = Pipeline<Regression, on_host::Device, FP16, MicroBatches<2>>;
  one all({.seed = 3});
  parts half({.seed = 3});
  laws::sample_batch<one> const data(1);
  typename one::batch const b = data.view();
  all.step(b);
  half.accumulate({b.inputs.first(10), b.labels.first(6)});
  auto const r = half.step({b.inputs.subspan(10), b.labels.subspan(6)});
  CHECK(r.loss_scale == 65536);
  auto const x = laws::snapshot(all).values, y = laws::snapshot(half).values;
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == Approx(x[i]).epsilon(1e-3).margin(1e-4));
}

TEST_CASE("a watcher sees floats, of values and of statistics", "[cuda]") {
  using trainer = Pipeline<Regression, on_host::Device, BF16, Stages<2>, MicroBatchSize<6>>;
  trainer t({.seed = 3});
  laws::sample_batch<trainer> const data(1);
  long seen = 0;
  bool finite = true;
  t.watch(data.view(), [&](launch_seen const& l) {
    for (int k = 0; k < l.what->count; ++k)
      for (long i = 0; i < l.operands[k].elements; ++i, ++seen)
        finite = finite && std::isfinite(static_cast<float const*>(l.values(k))[i]);
  });
  CHECK(finite);
  CHECK(seen > 100);
}

TEST_CASE("a machine without a device says so", "[cuda]") {
  fake_gpu::gpu.devices = 0;
  CHECK_THROWS_WITH((Trained<FP32>()), "no CUDA device");
  fake_gpu::gpu.devices = 1;
}

namespace {

long sum(std::map<void*, long> const& memory) {
  long bytes = 0;
  for (auto const& [at, size] : memory) bytes += size;
  return bytes;
}

/// What a trainer has of the device, and of its host, when it has done all it can do.
template <class Trainer>
void asks_for_what_is_planned() {
  REQUIRE(fake_gpu::gpu.memory.empty());
  REQUIRE(fake_gpu::gpu.pinned.empty());
  {
    laws::sample_batch<Trainer> const data(1);
    std::vector<float> outputs(std::size_t(Trainer::samples * Trainer::outputs_per_sample));
    Trainer t;
    t.step(data.view());
    t.evaluate(data.view(1));
    t.forward(data.view(), outputs);
    t.parameters();
    auto const& plan = Trainer::plan;
    std::vector<long> sizes, planned(plan.rank_bytes.begin(), plan.rank_bytes.end());
    for (auto const& [at, size] : fake_gpu::gpu.memory) sizes.push_back(size);
    std::sort(sizes.begin(), sizes.end());
    std::sort(planned.begin(), planned.end());
    CHECK(sizes == planned);
    long mini_batch = 0;
    for (long const bytes : plan.staging_bytes) mini_batch += bytes;
    CHECK(sum(fake_gpu::gpu.pinned) <= mini_batch / 2 + 512 + long(outputs.size() * sizeof(float)));
  }
  CHECK(fake_gpu::gpu.memory.empty());
  CHECK(fake_gpu::gpu.pinned.empty());
}

}  // namespace

TEST_CASE("a device is asked for one arena per rank, as large as planned, and nothing else",
          "[cuda]") {
  asks_for_what_is_planned<Trained<BF16, Stages<8>, ZeroBubbleV, RecomputeAll>>();
  asks_for_what_is_planned<
      Pipeline<Regression, on_host::Device, FP16, Stages<2>, MicroBatchSize<6>>>();
  asks_for_what_is_planned<
      Pipeline<WithOwn, on_host::Device, FP32, Stages<3>, MicroBatches<3>, MicroBatchSize<2>>>();
}

TEST_CASE("16-bit values take half the memory", "[cuda]") {
  using wide = Trained<FP32, Stages<4>, GPipe>;
  using narrow = Trained<BF16, Stages<4>, GPipe>;
  for (int s = 0; s < 4; ++s) {
    auto const &a = wide::plan.stages[s], &b = narrow::plan.stages[s];
    CHECK(b.boundary_bytes < a.boundary_bytes * 3 / 4);
    CHECK(b.saved_bytes < a.saved_bytes);
    CHECK(b.gradient_bytes == a.gradient_bytes);
    CHECK(b.parameter_bytes == a.parameter_bytes + detail::align_up(a.parameter_bytes / 2));
  }
}
