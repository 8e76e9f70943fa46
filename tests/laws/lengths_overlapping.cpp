// SPDX-License-Identifier: BSL-1.0
//
// Lengths where steps overlap: each step in progress has its own rows and segments, and the bits
// are those of padded samples under the same schedule.
#include "catch.hpp"

#include <limits>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>

#include "laws/data.hpp"
#include "laws/documents.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 24;

struct Writer
    : Model<Tokens<words, context>, Embedding<12>, Positions, Dropout<1, 10>,
            Repeat<2, Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<12>, GELU>>,
            LayerNorm, Linear<words>, CrossEntropy> {};

template <class... More>
using Of = Pipeline<Writer, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<3>, More...>;

/// Ten steps, on mini-batches of unequal lengths and numbers of samples, ragged and padded.
template <class... Options>
void has_the_bits_of_padding() {
  using one = Of<Options...>;
  using several = Of<Lengths<>, Options...>;
  one padded({.seed = 5});
  several dense({.seed = 5});
  std::vector<laws::documents<one>> all;
  for (unsigned step = 1; step <= 10; ++step)
    all.emplace_back(step, one::samples - 3 * int(step % 3));
  std::vector<typename one::batch> whole;
  std::vector<typename several::batch> given;
  for (auto const& of : all) {
    whole.push_back(of.whole());
    given.push_back(whole.size() % 3 == 0 ? of.template padded_batch<several>()
                                          : of.template ragged<several>());
  }
  std::vector<step_result> wanted;
  padded.train(whole, [&](step_result const& r) { wanted.push_back(r); });
  std::size_t step = 0;
  dense.train(given, [&](step_result const& r) {
    CHECK(laws::same_bits(wanted[step].loss, r.loss));
    CHECK(laws::same_bits(wanted[step++].gradient_norm, r.gradient_norm));
  });
  CHECK(step == all.size());
  auto const x = padded.parameters(), y = dense.parameters();
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(laws::same_numbers(x[i].values, y[i].values));
}

}  // namespace

TEST_CASE("lengths keep the bits of padding where steps overlap", "[laws]") {
  has_the_bits_of_padding<Stages<2>, Steady<>>();
  has_the_bits_of_padding<Stages<3>, PipeDream2BW<>, HostThreads<2>>();
  has_the_bits_of_padding<Stages<2>, PACI<>, GradientAccumulation<2>>();
}
TEST_CASE("a step that overlaps others is rejected with its own rows", "[laws]") {
  using trainer = Of<Stages<2>, Steady<>, Lengths<>>;
  trainer t({.seed = 5});
  std::vector<laws::documents<Of<>>> all;
  for (unsigned step = 1; step <= 4; ++step) all.emplace_back(step, Of<>::samples);
  std::vector<typename trainer::batch> given;
  for (auto const& of : all) given.push_back(of.template ragged<trainer>());
  t.parameters()[0].values[0] = std::numeric_limits<float>::infinity();
  t.parameters_changed();
  CHECK_THROWS_WITH(t.train(given), Catch::Contains("step 1 rejected: a parameter of layer 0"));
}
TEST_CASE("prefetched mini-batches keep their own rows", "[laws]") {
  using one = Of<>;
  using several = Of<Lengths<>, Stages<2>, Prefetching>;
  one padded({.seed = 5});
  several dense({.seed = 5});
  std::vector<laws::documents<one>> all;
  for (unsigned step = 1; step <= 6; ++step) all.emplace_back(step, one::samples - int(step % 4));
  auto const give = [&](std::size_t step) {
    laws::documents<one> const gone = all[step];
    if (step % 2 == 0)
      dense.prefetch(gone.template padded_batch<several>());
    else
      dense.prefetch(gone.template ragged<several>());
  };
  give(0);
  for (std::size_t step = 0; step < all.size(); ++step) {
    if (step + 1 < all.size()) give(step + 1);
    if (step == 3) {  // two wait, and stay as they are
      CHECK_THROWS_WITH(give(0), Catch::Contains("prefetched already"));
      CHECK(laws::same_bits(padded.evaluate(all[0].whole()),
                            dense.evaluate(all[0].template ragged<several>())));
    }
    step_result const a = padded.step(all[step].whole()), b = dense.step(prefetched);
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
  }
}
