// SPDX-License-Identifier: BSL-1.0
//
// A trainer whose values are bfloat16, on the host: its parameters, files and averages are those of
// a trainer in fp32, and copies that kernels read follow whatever changes the parameters.
#include "catch.hpp"

#include <algorithm>
#include <vector>

#include <pipe/weights/copy_weights.hpp>
#include <pipe/weights/weights.hpp>

#include "laws/bit_law.hpp"
#include "laws/everything.hpp"
#include "laws/resume_law.hpp"

using namespace pp;
using laws::Everything;

namespace {

template <class P, class... More>
using Of = Pipeline<Everything, P, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>,
                    Averaging<1, 2>, More...>;

}  // namespace

TEST_CASE("bf16: a run is resumed in other stages, from the file of fp32", "[train]") {
  laws::resumes<Of<BF16>, Of<BF16, Stages<4>, RecomputeAll>>(1);
  // What the file has is fp32: a trainer in fp32 loads it, and gives it back.
  temporary_folder const folder;
  Of<BF16> a(laws::settings_of<Of<BF16>>(1));
  a.step(laws::sample_batch<Of<BF16>>(1).view());
  a.save(folder.file("a"), 1);
  Of<FP32> b(laws::settings_of<Of<FP32>>(2));
  b.load(folder.file("a"));
  CHECK(laws::same_parameters(a, b));
  b.save(folder.file("b"), 1);
  CHECK(same_content(folder.file("a"), folder.file("b")));
}

TEST_CASE("bf16: copies of parameters follow what writes parameters", "[train]") {
  using trainer = Of<BF16, Stages<2>, HostThreads<2>>;
  laws::sample_batch<trainer> const data(1), other(2);
  trainer a({.seed = 1}), b({.seed = 2});
  for (int i = 0; i < 3; ++i) a.step(data.view());
  double const loss = a.evaluate(other.view());
  CHECK_FALSE(laws::same_bits(loss, b.evaluate(other.view())));
  SECTION("a file of weights") {
    temporary_folder const folder;
    save_weights(a, folder.file("w"));
    load_weights(b, folder.file("w"));
  }
  SECTION("a copy from another trainer") { copy_weights(a, b); }
  SECTION("a program") { laws::copy_parameters(a, b); }
  SECTION("averages that take the place of parameters") {
    laws::copy_parameters(a, b);
    a.swap_averages();
    double const averaged = a.evaluate(other.view());
    CHECK_FALSE(laws::same_bits(averaged, loss));
    laws::copy_parameters(a, b);
    CHECK(laws::same_bits(averaged, b.evaluate(other.view())));
    a.swap_averages();
    laws::copy_parameters(a, b);
  }
  CHECK(laws::same_bits(loss, b.evaluate(other.view())));
  CHECK(laws::same_bits(loss, a.evaluate(other.view())));
}

TEST_CASE("bf16: a plan has the bytes that are allocated, fewer for values", "[train]") {
  using narrow = Of<BF16, Stages<3>>;
  using wide = Of<FP32, Stages<3>>;
  narrow t;
  for (int r = 0; r < 3; ++r) {
    CHECK(t.allocated_bytes(r) == narrow::plan().rank_bytes[r]);
    auto const &stage = narrow::plan().stages[std::size_t(r)],
               &full = wide::plan().stages[std::size_t(r)];
    CHECK(stage.optimizer_bytes == full.optimizer_bytes);
    CHECK(stage.gradient_bytes == full.gradient_bytes);
    CHECK(stage.parameter_bytes > full.parameter_bytes);
    CHECK(stage.transposed_bytes <= full.transposed_bytes);
    CHECK(stage.saved_bytes < full.saved_bytes);
  }
}
