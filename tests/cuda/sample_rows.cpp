// SPDX-License-Identifier: BSL-1.0
//
// The kernel that draws tokens: the host's tokens, seed by seed, and the probabilities that it
// states.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <pipe/backend/cuda/rows/sample_rows.hpp>
#include <pipe/infer/sampling.hpp>

#include "cuda/run_bodies.hpp"
#include "laws/data.hpp"

using namespace pp;

namespace {

using kernel = cuda::sample_rows_kernel;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr cuda::thread_order orders[] = {
    cuda::thread_order::ascending, cuda::thread_order::descending, cuda::thread_order::interleaved};

std::vector<int> draw(std::vector<float> const& logits, int columns,
                      detail::sampling_settings const& s, std::uint64_t place,
                      cuda::thread_order order = cuda::thread_order::ascending) {
  std::vector<int> tokens(logits.size() / std::size_t(columns), -1);
  kernel::arguments a;
  a.logits = logits.data();
  a.rows = cuda::extent(tokens.size());
  a.columns = columns;
  a.top_k = s.top_k;
  a.temperature = s.temperature;
  a.top_p = s.top_p;
  a.seed = s.seed;
  a.place = place;
  a.tokens = tokens.data();
  on_host::run_kernel<kernel>(a, order);
  return tokens;
}

/// Logits of a row: some are equal, some excluded; of all sizes.
std::vector<float> some_logits(int rows, int columns, double size) {
  std::vector<float> x(std::size_t(rows * columns));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = float(size * laws::uniform(3, 5, i));
    if (i % 7 == 3) x[i] = std::round(x[i]);  // -0 too
    if (i % 11 == 5) x[i] = -infinity;
  }
  for (int r = 0; r < rows; ++r) x[std::size_t(r * columns + columns / 2)] = float(size) / 2;
  return x;
}

/// Rows of each draw have seeds of their own.
void draws_as_the_host(int columns, detail::sampling_settings const& s, double size, int draws) {
  int const rows = 3;
  auto const x = some_logits(rows, columns, size);
  for (int i = 0; i < draws; ++i) {
    auto const found = draw(x, columns, s, std::uint64_t(i), orders[i % 3]);
    for (int r = 0; r < rows; ++r) {
      detail::sampling_settings of_row = s;
      of_row.seed += std::uint64_t(r);
      INFO("columns " << columns << ", temperature " << s.temperature << ", top-k " << s.top_k
                      << ", top-p " << s.top_p << ", place " << i << ", row " << r);
      CHECK(found[std::size_t(r)] ==
            sampling::sample(std::span(x).subspan(std::size_t(r * columns), std::size_t(columns)),
                             of_row, std::uint64_t(i)));
    }
  }
}

}  // namespace

TEST_CASE("weights of tokens are those of exp, rounded", "[cuda]") {
  CHECK(cuda::integer_exp(0, 52) == std::uint64_t(1) << 52);
  CHECK(cuda::integer_exp(0, 0) == 1);
  CHECK(cuda::integer_exp(-infinity, 52) == 0);
  for (int i = 0; i < 20000; ++i) {
    double const x = -45.0 * i / 20000 - 1e-3 * (laws::uniform(1, 2, std::uint64_t(i)) + 1);
    double const expected = std::exp(x) * 0x1p52;
    CHECK(std::fabs(double(cuda::integer_exp(x, 52)) - expected) <= 0.5 + 1e-15 * expected);
  }
  // A smaller scale rounds the same number.
  CHECK(cuda::integer_exp(-3.25, 30) == std::uint64_t(std::llround(std::exp(-3.25) * 0x1p30)));
}

TEST_CASE("a kernel draws the tokens that the host draws", "[cuda][long]") {
  for (int const columns : {1, 2, 33, 256, 700})
    for (double const temperature : {0.0, 0.1, 1.0, 3.0})
      for (int const top_k : {0, 1, 5, 300})
        for (double const top_p : {1.0, 0.9, 0.3})
          draws_as_the_host(columns, {temperature, top_k, top_p, 17}, 4, columns < 300 ? 4 : 2);
  draws_as_the_host(9000, {0.8, 0, 1, 5}, 5, 6);
  draws_as_the_host(9000, {0.8, 40, 0.95, 5}, 5, 6);
  draws_as_the_host(9000, {1.5, 0, 0.9, 5}, 5, 6);
  draws_as_the_host(9000, {1, 0, 1, 5}, 50, 6);  // most weights are 0
  draws_as_the_host(9000, {1e-320, 0, 1, 5}, 5, 2);
}

TEST_CASE("of equal logits the first are kept", "[cuda]") {
  // Two above, then seven equal ones.
  std::vector<float> const x{1, 2, 1, 1, 3, 1, 1, -0.0f, 0, 1, 1};
  for (std::uint64_t place = 0; place < 32; ++place)
    for (int const top_k : {2, 3, 5, 8, 9, 10})
      CHECK(draw(x, 11, {50, top_k, 1, 3}, place)[0] ==
            sampling::sample(x, {50, top_k, 1, 3}, place));
  // Of eight equal ones a half and a bit more are five.
  std::vector<float> const equal(8, -0.5f);
  std::vector<int> seen(8);
  for (std::uint64_t place = 0; place < 200; ++place)
    ++seen[std::size_t(draw(equal, 8, {1, 0, 0.51, 3}, place)[0])];
  for (int i = 0; i < 8; ++i) CHECK((seen[std::size_t(i)] > 0) == (i < 5));
  // Exactly a half: four. Of the first six three.
  for (std::uint64_t place = 0; place < 100; ++place) {
    CHECK(draw(equal, 8, {1, 0, 0.5, 3}, place)[0] < 4);
    CHECK(draw(equal, 8, {1, 6, 0.5, 3}, place)[0] < 3);
  }
}

TEST_CASE("tokens are as frequent as they are likely", "[cuda][long]") {
  std::vector<float> const x{0.5f, -1, 2, 0, 1.5f, -3};
  detail::sampling_settings const s{0.7, 5, 0.97, 11};
  std::vector<double> p = sampling::probabilities(x, s.temperature);
  sampling::keep_top_k(p, s.top_k);
  sampling::keep_top_p(p, s.top_p);
  std::vector<double> seen(x.size());
  int const draws = 4000;
  for (int i = 0; i < draws; ++i) ++seen[std::size_t(draw(x, 6, s, std::uint64_t(i))[0])];
  double chi_squared = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (p[i] == 0) {
      CHECK(seen[i] == 0);
      continue;
    }
    chi_squared += std::pow(seen[i] - draws * p[i], 2) / (draws * p[i]);
  }
  CHECK(chi_squared < 20);  // of at most 4 degrees of freedom: once in 2000 seeds
}

TEST_CASE("a row without a token says which logit is to blame", "[cuda]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (double const temperature : {0.0, 1.0})
    for (auto const order : orders) {
      std::vector<float> x = some_logits(4, 600, 3);
      x[5] = nan;
      x[30] = infinity;
      x[600 + 599] = infinity;
      std::fill(x.begin() + 1200, x.begin() + 1800, -infinity);
      auto const tokens = draw(x, 600, {temperature, 7, 0.9, 1}, 0, order);
      CHECK(tokens[0] == -2 - 5);
      CHECK(tokens[1] == -2 - 599);
      CHECK(tokens[2] == -2 - 600);
      CHECK(tokens[3] >= 0);
    }
}

TEST_CASE("texts grow by their tokens, until there is no room", "[cuda]") {
  int const columns = 40, context = 3;
  auto x = some_logits(3 * context, columns, 3);
  std::vector<int> lengths{1, 2, 3}, ids(9, -1), tokens(3, -1);
  x[std::size_t((context + 1) * columns)] = infinity;  // the last position of text 1
  kernel::arguments a;
  a.logits = x.data();
  a.rows = 3;
  a.columns = columns;
  a.seed = 9;
  a.tokens = tokens.data();
  a.context = context;
  a.lengths = lengths.data();
  a.ids = ids.data();
  on_host::run_kernel<kernel>(a);
  auto const expected = [&](int row, std::uint64_t seed) {
    return sampling::sample(std::span<float const>(x).subspan(std::size_t(row * columns), columns),
                            {.seed = seed}, 0);
  };
  CHECK(tokens == std::vector{expected(0, 9), -2, expected(8, 11)});
  CHECK(lengths == std::vector{2, 2, 3});
  CHECK(ids == std::vector{-1, tokens[0], -1, -1, -1, -1, -1, -1, -1});
}
