// SPDX-License-Identifier: BSL-1.0
//
// Runs with Lengths as others look at them: what a launch has written, times of launches whose
// micro-batches have unequal rows, and runs that are slow for their rows.
#include "catch.hpp"

#include <cmath>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/plan/profile.hpp>

#include "laws/given_times.hpp"
#include "poisoned.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 24;

struct Writer : Model<Tokens<words, context>, Embedding<8>, Residual<LayerNorm, Attention<2>>,
                      LayerNorm, Linear<words>, CrossEntropy> {};
template <class... More>
using Of = Pipeline<Writer, PortableHost, MicroBatches<4>, MicroBatchSize<2>, More...>;

/// Micro-batches of samples of 8, 16 and 24 tokens.
struct uneven {
  std::vector<int> lengths{8, 8, 24, 24, 16, 8, 24, 16}, ids;
  uneven() {
    for (int n : lengths)
      for (int i = 0; i < n; ++i) ids.push_back(i % words);
  }
  template <class Trainer>
  typename Trainer::batch batch() const {
    return typename Trainer::batch{ids, ids}.set_lengths(lengths);
  }
};

std::string told;
detail::progress* ended = nullptr;

}  // namespace

TEST_CASE("a watcher knows how many elements a launch has written", "[laws]") {
  using trainer = Of<Lengths<>, Stages<2>>;
  uneven const given;
  trainer t({.seed = 3});
  poison(t);
  long whole = 0, some = 0, bad = 0;
  std::mutex alone;
  t.watch(given.batch<trainer>(), [&](launch_seen const& seen) {
    std::lock_guard const lock(alone);
    for (int k = 0; k < seen.what->count; ++k) {
      long const elements = seen.operands[k].elements, n = seen.written(k);
      if (elements == 0 || seen.operands[k].at.where == detail::region::none) continue;
      bad += n < 1 || n > elements;
      ++(n == elements ? whole : some);
      float const* const x = static_cast<float const*>(seen.values(k));
      for (long i = 0; i < n; ++i) bad += !std::isfinite(x[i]);
    }
  });
  CHECK(bad == 0);
  CHECK(whole > 0);
  CHECK(some > whole / 2);
}
TEST_CASE("measured times are compared within a micro-batch of a given number of rows", "[laws]") {
  uneven const given;
  constexpr long times[] = {1000, 3000, 1500, 2500};
  auto const clock = [&](launch_seen const& seen) { return times[seen.micro_batch]; };
  laws::timed_by<Of<Lengths<>>, decltype(clock)> dense(clock);
  CHECK(measure_layers(dense, given.batch<Of<Lengths<>>>(), 3).spread == 0);
  // Without the option equal times are expected.
  laws::timed_by<Of<>, decltype(clock)> padded(clock);
  std::vector<int> const ids(std::size_t(Of<>::samples) * context, 1);
  CHECK_THROWS_WITH(measure_layers(padded, Of<>::batch{ids, ids}, 3),
                    Catch::Contains("another program"));
}
TEST_CASE("runs are slow by the time of a row", "[laws]") {
  using namespace std::chrono_literals;
  struct rank {
    detail::activity doing;
  } ranks[1];
  detail::progress finished;
  ended = &finished;
  detail::executor_settings settings;
  settings.waiting.deadline = 0ms;
  settings.slow = {.factor = 2, .at_least = 20ms, .report = [](std::string_view text) {
                     told = text;
                     ended->publish(1);
                   }};
  detail::run_watch watch(settings);
  detail::segment_list const half{12, 1, 0, 24, nullptr, nullptr, nullptr, nullptr};
  detail::job j;
  j.batch.samples = 1;
  j.batch.segments = &half;
  j.batch.axes = 1;
  CHECK(detail::part_of_rows(j, 1) == .5);
  for (int i = 0; i < detail::recent_times::enough; ++i) watch.note(j, .001, .125);
  CHECK(watch.wait(finished, 1, ranks, {}, j, detail::part_of_rows(j, 1), [] { return 0L; }) ==
        nullptr);
  CHECK_THAT(told, Catch::Contains(": the median of those before is 0.004 s for as many rows"));
}
