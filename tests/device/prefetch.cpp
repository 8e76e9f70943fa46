// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches that are prefetched: the bits of the same ones that are not, on a device and on a
// host, whatever becomes of the program's arrays when they have been read.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "device/device_arrays.hpp"
#include "laws/bit_law.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;
using fake_gpu::preference;

struct Regression : Model<Input<5>, Linear<12>, ReLU, Linear<12>, RMSNorm, SiLU, Linear<3>, MSE> {};

template <class M, class Backend, class... More>
using trained =
    Pipeline<M, Backend, MicroBatches<3>, MicroBatchSize<2>, Stages<2>, Prefetching, More...>;

/// The arrays of a program, which it uses again for every mini-batch.
template <class Trainer>
class loader {
 public:
  /// Mini-batch i, which has fewer samples at times.
  typename Trainer::batch load(int i) {
    data_ = laws::sample_batch<Trainer>(std::uint64_t(i) + 1);
    return data_.view(samples(i));
  }
  static long samples(int i) { return Trainer::samples - (i == 3 ? 1 : 0); }
  /// Nothing that a run must not read.
  void overwrite() {
    std::fill(data_.inputs.begin(), data_.inputs.end(), typename Trainer::input_type(1 << 20));
    std::fill(data_.labels.begin(), data_.labels.end(), typename Trainer::label_type(1 << 20));
  }

 private:
  laws::sample_batch<Trainer> data_{99};
};

/// Prefetches each mini-batch before the call on the one before, as a program does that overlaps
/// them; every other trainer is told everything as it comes.
template <class Trainer>
void has_the_bits_of_one_after_the_other(bool by_streams) {
  typename Trainer::settings const s{
      .seed = 3, .clip_norm = 0.1, .runtime = {.timeline = by_streams}};
  Trainer a(s), b(s);
  loader<Trainer> in_front, behind;
  constexpr int count = 6;
  laws::sample_batch<Trainer> const other(77);
  b.prefetch(in_front.load(0));
  in_front.overwrite();
  for (int i = 0; i < count; ++i) {
    INFO("mini-batch " << i);
    // the arrays of the next one are read when the call on this one has returned, not later
    if (i + 1 < count) b.prefetch(in_front.load(i + 1));
    auto const batch = behind.load(i);
    if (i % 3 == 1) {
      CHECK(laws::same_bits(a.accumulate(batch).loss, b.accumulate(prefetched).loss));
    } else if (i == 4) {
      CHECK(laws::same_bits(a.gradients(batch).loss, b.gradients(prefetched).loss));
    } else if (i == 5) {
      CHECK(laws::same_bits(a.evaluate(batch), b.evaluate(prefetched)));
    } else {
      auto const x = a.step(batch, 0.01), y = b.step(prefetched, 0.01);
      CHECK(laws::same_bits(x.loss, y.loss));
      CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
    }
    in_front.overwrite();
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
    // another one in between
    if (i == 2) CHECK(laws::same_bits(a.step(other.view()).loss, b.step(other.view()).loss));
    if (i == 0) CHECK(laws::same_bits(a.evaluate(other.view()), b.evaluate(other.view())));
  }
  CHECK_THROWS_WITH(b.step(prefetched), Catch::Contains("no mini-batch is prefetched"));
}

}  // namespace

TEST_CASE("prefetched mini-batches give the bits of others", "[cuda]") {
  for (preference p : {preference::awaited, preference::last, preference::first}) {
    gpu.prefers = p;
    for (bool const by_streams : {false, true}) {
      has_the_bits_of_one_after_the_other<trained<Regression, on_host::Device, FP16>>(by_streams);
      has_the_bits_of_one_after_the_other<trained<laws::Everything, on_host::Device>>(by_streams);
    }
  }
  gpu.prefers = preference::awaited;
}
TEST_CASE("a host has the same of a program that prefetches", "[cuda]") {
  has_the_bits_of_one_after_the_other<trained<Regression, PortableHost>>(false);
}

TEST_CASE("the next mini-batch is uploaded in a run, which does not wait for it", "[cuda]") {
  using trainer = trained<Regression, on_host::Device, FP16>;
  trainer t({.runtime = {.timeline = true}});
  laws::sample_batch<trainer> const data(1), next(2);
  t.step(data.view());  // uploads parameters
  t.prefetch(data.view());
  auto& count = gpu.count;
  count = {};
  t.prefetch(next.view());
  CHECK(count.uploaded == 0);
  t.step(prefetched);
  CHECK_FALSE(gpu.is_idle());
  long const during = count.uploaded;
  count = {};
  t.step(prefetched);
  // what is left are the numbers of the run
  CHECK(during - count.uploaded ==
        long(sizeof(fp16) * data.inputs.size() + sizeof(float) * data.labels.size()));
}

TEST_CASE("the plan counts the room of a prefetched mini-batch", "[cuda]") {
  using trainer = trained<Regression, on_host::Device, FP16>;
  using without =
      Pipeline<Regression, on_host::Device, FP16, MicroBatches<3>, MicroBatchSize<2>, Stages<2>>;
  REQUIRE(gpu.memory.empty());
  trainer t;
  laws::sample_batch<trainer> const data(1);
  t.prefetch(data.view());
  t.prefetch(data.view());
  t.step(prefetched);
  std::vector<long> sizes, planned;
  for (auto const& [at, size] : gpu.memory) sizes.push_back(size);
  for (int r = 0; r < 2; ++r) {
    planned.push_back(trainer::plan.rank_bytes[r]);
    CHECK(trainer::plan.staging_bytes[r] == 2 * without::plan.staging_bytes[r]);
  }
  std::sort(sizes.begin(), sizes.end());
  std::sort(planned.begin(), planned.end());
  CHECK(sizes == planned);
}

namespace {

template <class Trainer>
void refuses_what_it_cannot_keep() {
  Trainer t({.seed = 3}), plain({.seed = 3});
  laws::sample_batch<Trainer> data(1);
  CHECK_THROWS_AS(t.step(prefetched), error);
  auto const whole = data.view();
  CHECK_THROWS_AS(t.prefetch({whole.inputs, whole.labels.first(4)}), data_error);
  CHECK_THROWS_AS(t.step(prefetched), error);
  t.prefetch(whole);
  t.prefetch(whole);
  CHECK_THROWS_WITH(t.prefetch(whole), Catch::Contains("2 mini-batches are prefetched already"));
  // a refused rate uses nothing up
  CHECK_THROWS_AS(t.step(prefetched, -1), data_error);
  for (int i = 0; i < 2; ++i)
    CHECK(laws::same_bits(t.step(prefetched).loss, plain.step(whole).loss));
  CHECK_THROWS_WITH(t.step(prefetched), Catch::Contains("no mini-batch is prefetched"));
  // a step that is rejected uses its own mini-batch up, and says where the number is
  laws::sample_batch<Trainer> bad(2);
  bad.inputs[4] = std::numeric_limits<float>::infinity();
  t.prefetch(bad.view());
  t.prefetch(whole);
  CHECK_THROWS_WITH(t.step(prefetched), Catch::Contains("inputs: inf at position 4 (sample 0)"));
  CHECK(laws::same_bits(t.step(prefetched).loss, plain.step(whole).loss));
  CHECK(laws::same_numbers(laws::snapshot(t).values, laws::snapshot(plain).values));
}

}  // namespace

TEST_CASE("what is prefetched is refused, used up and rejected alike", "[cuda]") {
  refuses_what_it_cannot_keep<trained<Regression, PortableHost>>();
  refuses_what_it_cannot_keep<trained<Regression, on_host::Device, BF16>>();
}

TEST_CASE("a prefetched mini-batch outlives a run that fails, or says that it does not", "[cuda]") {
  using trainer = trained<Regression, on_host::Device, FP16, NoGraphs>;
  laws::sample_batch<trainer> const data(1), next(2);
  trainer plain({.seed = 3});
  double const expected = plain.evaluate(next.view());
  long kept = 0, lost = 0, failures = 0;
  for (bool failed = true; failed; ++failures) {
    trainer t({.seed = 3});
    loader<trainer> arrays;
    t.prefetch(data.view());
    t.prefetch(arrays.load(1));
    gpu.failing = gpu.calls + failures;
    failed = false;
    try {
      t.evaluate(prefetched);
    } catch (error const&) {
      failed = true;
    }
    failed = failed || gpu.calls > gpu.failing;
    gpu.failing = -1;
    arrays.overwrite();
    try {
      double const found = t.evaluate(prefetched);
      CHECK(laws::same_bits(found, expected));
      ++kept;
    } catch (error const& e) {
      CHECK(std::string(e.what()).find("was discarded when a run before it failed") !=
            std::string::npos);
      ++lost;
    }
    t.prefetch(next.view());
    CHECK(laws::same_bits(t.evaluate(prefetched), expected));
  }
  CHECK(kept > 10);
  CHECK(lost > 2);
}
