// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches in device memory: the bits of the same ones in the host's, whatever the device
// prefers; no copy through the host; what is refused there is refused here, with the same words.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "device/device_arrays.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"
#include "laws/images.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;
using on_host::device_array;
using on_host::device_copy;

struct Regression : Model<Input<5>, Linear<12>, ReLU, Linear<12>, RMSNorm, SiLU, Linear<3>, MSE> {};
/// Two kinds of inputs, numbers that only the loss reads, and terms that weigh differently.
struct Weighted : Model<Input<4, 3>, Linear<5>, Stash<"left">, Named<"ids", Tokens<9, 4>>,
                        Embedding<5>, Pop<"left">, Tanh, Linear<4>,
                        With<CrossEntropy, Weights<"weight">, ClassWeights<3, 1, 0, 7>>> {};
/// A further loss without labels.
struct Coded : Model<Input<3>, Linear<6>, Tanh, Stash<"code">, Linear<2>,
                     Losses<MSE, FurtherLoss<"spread", "code", TripletMarginLoss<1, 2>>>> {};
struct Chances : Model<Input<3>, Linear<4>, Tanh, Linear<2>, With<BCE, Weights<"weight">>> {};

template <class M, class Precision>
using trained =
    Pipeline<M, on_host::Device, Precision, MicroBatches<3>, MicroBatchSize<2>, Stages<2>>;

template <class Trainer>
std::vector<float> outputs_of(long samples) {
  return std::vector<float>(std::size_t(samples * Trainer::outputs_per_sample));
}

/// Trains one trainer on the host's arrays and one on a device's, in all ways that there are.
/// by_streams: steps are no graphs.
template <class Trainer>
void has_the_bits_of_the_hosts_arrays(bool by_streams) {
  typename Trainer::settings const s{
      .seed = 3, .clip_norm = 0.1, .runtime = {.timeline = by_streams}};
  Trainer a(s), b(s);
  fake_gpu::stream* stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  for (int step = 0; step < 4; ++step) {
    laws::sample_batch<Trainer> const data(std::uint64_t(step) + 1), other(77);
    long const samples = Trainer::samples - (step == 2 ? 1 : 0);
    auto const host = data.view(samples), first = other.view();
    cudaStream_t const on = step % 2 == 0 ? nullptr : stream;
    INFO("step " << step << ", " << samples << " samples");
    CHECK(laws::same_bits(a.gradients(host).loss,
                          b.gradients(device_copy<Trainer>(host, on).view()).loss));
    CHECK(laws::same_numbers(laws::snapshot(a).gradients, laws::snapshot(b).gradients));
    if (Trainer::loss_names.size() > 1 && step % 3 > 0) {  // each has a divisor of its own
      for (int k = 0; k < step % 3; ++k) a.count_terms(first), b.count_terms(first);
      a.count_terms(host), b.count_terms(host);
    }
    for (int k = 0; k < step % 3; ++k)
      CHECK(laws::same_bits(a.accumulate(first).loss,
                            b.accumulate(device_copy<Trainer>(first, on).view()).loss));
    device_copy<Trainer> const device(host, on);
    auto const x = a.step(host, 0.01), y = b.step(device.view(), 0.01);
    CHECK(laws::same_bits(x.loss, y.loss));
    CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
    CHECK(laws::same_bits(a.evaluate(host), b.evaluate(device.view())));
    auto expected = outputs_of<Trainer>(samples), found = expected;
    a.forward(host, expected);
    device_array<float> outputs(found.size());
    b.forward(device.view(), outputs.view());
    CHECK(laws::same_numbers(outputs.read(), expected));
    b.forward(device.view(), found);
    CHECK(laws::same_numbers(found, expected));
    device_array<float> again(found.size());
    b.forward(host, again.view());
    CHECK(laws::same_numbers(again.read(), expected));
    int launches = 0;
    b.watch(device.view(), [&](launch_seen const&) { ++launches; });
    CHECK(launches > 0);
  }
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
}

template <class M, class Precision>
void has_the_bits_under_all_preferences() {
  using trainer = trained<M, Precision>;
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    gpu.prefers = p;
    has_the_bits_of_the_hosts_arrays<trainer>(p == preference::last);
  }
  gpu.prefers = preference::awaited;
}

}  // namespace

TEST_CASE("numbers in device memory give the bits of the host's", "[cuda]") {
  has_the_bits_under_all_preferences<Regression, FP32>();
  has_the_bits_under_all_preferences<Regression, TF32>();
  has_the_bits_under_all_preferences<Regression, BF16>();
  has_the_bits_under_all_preferences<Regression, FP16>();
}
TEST_CASE("ids in device memory give the bits of the host's", "[cuda]") {
  has_the_bits_under_all_preferences<laws::Everything, BF16>();
}
TEST_CASE("weights in device memory give the bits of the host's", "[cuda]") {
  has_the_bits_under_all_preferences<Weighted, FP16>();
  has_the_bits_under_all_preferences<Chances, FP32>();
}
TEST_CASE("labels of several losses in device memory give the bits of the host's", "[cuda]") {
  has_the_bits_under_all_preferences<laws::Vision, BF16>();
  has_the_bits_under_all_preferences<Coded, FP32>();
}

namespace {

struct Heads
    : Model<Input<5>, Linear<12>, ReLU, Stash<"seen">, Linear<3>,
            Losses<CrossEntropy, FurtherLoss<"worth", "seen", Linear<8>, ReLU, Linear<2>, MSE>>> {};
/// The same with the losses the other way round. A ReLU may be rounded before or after.
struct Turned : Model<Input<5>, Linear<12>, ReLU, Stash<"seen">, Linear<8>, ReLU, Linear<2>,
                      Losses<MSE, FurtherLoss<"scores", "seen", Linear<3>, CrossEntropy>>> {};

/// Each output, from and to either memory.
template <class Precision>
void gives_each_output() {
  using trainer = trained<Heads, Precision>;
  trainer t({.seed = 3});
  trained<Turned, Precision> turned({.seed = 4});
  auto const source = t.parameters();
  auto target = turned.parameters();
  std::size_t k = 0;
  for (std::size_t const i : {0, 1, 4, 5, 6, 7, 2, 3}) {
    std::copy(source[i].values.begin(), source[i].values.end(), target[k].values.begin());
    ++k;
  }
  turned.parameters_changed();
  laws::sample_batch<trainer> const data(1);
  for (long const samples : {trainer::samples, trainer::samples - 1}) {
    auto const host = data.view(samples);
    device_copy<trainer> const device(host);
    std::vector<float> scores(std::size_t(3 * samples)), worth(std::size_t(2 * samples));
    t.forward(host, scores);
    turned.forward(host.inputs, worth);
    auto scores_found = scores, worth_found = worth;
    auto const check = [&] {
      CHECK(laws::same_numbers(scores, scores_found));
      CHECK(laws::same_numbers(worth, worth_found));
      scores_found.assign(scores.size(), 0), worth_found.assign(worth.size(), 0);
    };
    t.template forward<"labels", "worth">(host, scores_found, worth_found);
    check();
    t.template forward<"worth", "labels">(device.view(), worth_found, scores_found);
    check();
    device_array<float> scores_there(scores.size()), worth_there(worth.size());
    t.template forward<"labels", "worth">(device.view(), scores_there.view(), worth_there.view());
    scores_found = scores_there.read(), worth_found = worth_there.read();
    check();
    device_array<float> again(worth.size());
    t.template forward<"worth">(host, again.view());
    scores_found = scores, worth_found = again.read();
    check();
  }
}

}  // namespace

TEST_CASE("outputs by name are the same from and to either memory", "[cuda]") {
  gives_each_output<FP32>();
  gives_each_output<BF16>();
}

TEST_CASE("a mini-batch in device memory is not copied through the host", "[cuda]") {
  using trainer = trained<Regression, BF16>;
  trainer t({.runtime = {.timeline = true}});  // by streams, so that all copies are counted
  laws::sample_batch<trainer> const data(1);
  device_copy<trainer> const device(data.view());
  device_array<float> outputs(outputs_of<trainer>(trainer::samples).size());
  t.step(data.view());
  gpu.count = {};
  t.step(data.view());
  auto const without = gpu.count;
  gpu.count = {};
  t.step(device.view());
  // the numbers of the run go up; no results of checks come down where nothing is to be checked
  CHECK(gpu.count.uploaded < without.uploaded);
  CHECK(gpu.count.uploaded == without.uploaded - long(sizeof(bf16) * data.inputs.size() +
                                                      sizeof(float) * data.labels.size()));
  CHECK(gpu.count.downloaded == without.downloaded);
  gpu.count = {};
  t.forward(device.view(), outputs.view());
  CHECK(gpu.count.downloads == 0);
}

namespace {

/// What is thrown, and that nothing has changed.
template <class Trainer, class Call>
std::string refusal(Trainer& t, Call const& call) {
  auto const before = laws::snapshot(t).values;
  std::string text;
  try {
    call();
  } catch (data_error const& e) {
    text = e.what();
  }
  CHECK(laws::same_numbers(laws::snapshot(t).values, before));
  CHECK(t.steps() == 0);
  return text;
}

}  // namespace

TEST_CASE("what a batch in the host's memory is refused for, one on the device is", "[cuda]") {
  using ids = trained<laws::Everything, BF16>;
  using weights = trained<Weighted, FP16>;
  using chances = trained<Chances, FP32>;
  using several = trained<laws::Vision, BF16>;
  int refused = 0;
  auto const alike = [&]<class Trainer>(Trainer& t, auto const& data) {
    std::string const expected = refusal(t, [&] { t.step(data.view()); });
    device_copy<Trainer> const device(data.view());
    CHECK(refusal(t, [&] { t.step(device.view()); }) == expected);
    CHECK(refusal(t, [&] { t.evaluate(device.view()); }) == expected);
    CHECK(refusal(t, [&] { t.gradients(device.view()); }) == expected);
    CHECK(refusal(t, [&] { t.accumulate(device.view()); }) == expected);
    CHECK(t.accumulated() == 0);
    CHECK(gpu.is_idle());
    CHECK_FALSE(expected.empty());
    ++refused;
  };
  ids a;
  for (int const bad : {11, -2, 1 << 30}) {
    laws::sample_batch<ids> data(1);
    data.inputs[23] = data.inputs[7] = bad;
    alike(a, data);
    laws::sample_batch<ids> other(1);
    other.labels[22] = other.labels[5] = bad;
    alike(a, other);
  }
  weights b;
  float const nan = std::numeric_limits<float>::quiet_NaN();
  for (float const bad : {-1.0f, nan, std::numeric_limits<float>::infinity()}) {
    laws::sample_batch<weights> data(1);
    data.numbers[2][3] = bad;
    alike(b, data);
  }
  laws::sample_batch<weights> data(1);
  data.ids[1][17] = 9;
  alike(b, data);
  chances c;
  for (float const bad : {-0.1f, 1.1f, nan}) {
    laws::sample_batch<chances> targets(1);
    targets.labels[9] = bad;
    alike(c, targets);
  }
  several d;
  for (float const bad : {-0.1f, nan}) {
    laws::sample_batch<several> patches(1), weight(1);
    patches.numbers[1][40] = bad;
    alike(d, patches);
    weight.numbers[3][2] = bad;
    alike(d, weight);
  }
  laws::sample_batch<several> kind(1);
  kind.ids[2][3] = 4;
  alike(d, kind);
  CHECK(refused == 18);
}

TEST_CASE("lists of a wrong size, and of the host, are refused", "[cuda]") {
  using trainer = trained<Weighted, FP16>;
  trainer t;
  laws::sample_batch<trainer> const data(1);
  device_copy<trainer> const device(data.view());
  auto const whole = device.view();
  auto const says = [&](auto const& change, std::string const& text) {
    auto b = whole;
    change(b);
    CHECK_THROWS_WITH(t.step(b), Catch::Contains(text));
    CHECK_THROWS_AS(t.step(b), data_error);
  };
  says([](auto& b) { b.inputs = b.inputs.first(4); }, "samples of 12 numbers, got 4 numbers");
  says([](auto& b) { b.inputs = {}; }, "got 0 numbers");
  says([](auto& b) { b.labels = b.labels.first(5); }, "labels: expected 24 numbers, got 5");
  says([](auto& b) { b.template set<"weight">(device_span<float const>{}); },
       "input \"weight\": expected 24 numbers, got 0");
  says([&](auto& b) { b.inputs = device_span<float const>(data.inputs.data(), 72); },
       "inputs: expected numbers in the memory of the device");
  says([&](auto& b) { b.labels = device_span<int const>(data.labels.data(), 24); },
       "labels: expected numbers in the memory of the device");
  says([&](auto& b) { b.template set<"ids">(device_span<int const>(data.ids[1].data(), 24)); },
       "input \"ids\": expected numbers in the memory of the device");
  std::vector<float> host(96);
  CHECK_THROWS_WITH(t.forward(whole, device_span<float>(host.data(), 96)),
                    Catch::Contains("outputs: expected numbers in the memory of the device"));
  device_array<float> outputs(95);
  CHECK_THROWS_WITH(t.forward(whole, outputs.view()),
                    Catch::Contains("outputs: expected 96 numbers, got 95"));
  CHECK(t.steps() == 0);
}

TEST_CASE("a number on the device that is not finite is found where the host finds it", "[cuda]") {
  using trainer = trained<Regression, BF16>;
  for (bool const in_labels : {false, true}) {
    laws::sample_batch<trainer> data(1);
    (in_labels ? data.labels : data.inputs)[4] = std::numeric_limits<float>::infinity();
    trainer t({.seed = 3});
    auto const before = laws::snapshot(t).values;
    std::string expected, found;
    try {
      t.step(data.view());
    } catch (not_finite const& e) {
      expected = e.what();
    }
    device_copy<trainer> const device(data.view());
    try {
      t.step(device.view());
    } catch (not_finite const& e) {
      found = e.what();
    }
    CHECK(expected.find("at position 4") != std::string::npos);
    CHECK(found == expected);
    CHECK(laws::same_numbers(laws::snapshot(t).values, before));
  }
}
