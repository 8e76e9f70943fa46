// SPDX-License-Identifier: BSL-1.0
//
// The cut is as good as the best of all cuts, found by trying every one.
#include "catch.hpp"

#include <algorithm>
#include <climits>
#include <vector>

#include <pipe/base/philox.hpp>
#include <pipe/passes/partition.hpp>

using namespace pp;

namespace {

using costs = std::vector<long>;

long slowest(costs const& c, std::vector<int> const& cuts) {
  long most = 0;
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    long sum = 0;
    for (int i = cuts[s]; i < cuts[s + 1]; ++i) sum += c[std::size_t(i)];
    most = std::max(most, sum);
  }
  return most;
}

/// The least slowest stage when layers [from, end) are cut into `stages`.
long best_by_trial(costs const& c, int from, int stages) {
  int const layers = int(c.size());
  long sum = 0, best = LONG_MAX;
  if (stages == 1) {
    for (int i = from; i < layers; ++i) sum += c[std::size_t(i)];
    return sum;
  }
  for (int cut = from + 1; cut <= layers - stages + 1; ++cut) {
    sum += c[std::size_t(cut - 1)];
    best = std::min(best, std::max(sum, best_by_trial(c, cut, stages - 1)));
  }
  return best;
}

void check(costs const& c) {
  int const layers = int(c.size());
  for (int stages = 1; stages <= layers; ++stages) {
    std::vector<int> cuts(std::size_t(stages + 1), -1);
    detail::partition_by_cost(c, layers, stages, cuts);
    REQUIRE(cuts.front() == 0);
    REQUIRE(cuts.back() == layers);
    for (std::size_t s = 0; s + 1 < cuts.size(); ++s) REQUIRE(cuts[s] < cuts[s + 1]);
    REQUIRE(slowest(c, cuts) == best_by_trial(c, 0, stages));
  }
}

costs random_costs(std::uint64_t seed, int layers, long limit) {
  costs c;
  for (int i = 0; i < layers; ++i) {
    detail::philox_block const r = math::random_block(seed, 1, std::uint64_t(i));
    c.push_back(r.word[1] % 5 == 0 ? 0 : long(r.word[0]) % limit);
  }
  return c;
}

}  // namespace

TEST_CASE("the partition by cost is optimal", "[passes]") {
  for (int layers = 1; layers <= 10; ++layers)
    for (std::uint64_t seed = 0; seed < 40; ++seed)
      check(random_costs(seed + 100 * std::uint64_t(layers), layers, seed % 2 ? 10 : 1000));
  for (std::uint64_t seed = 0; seed < 5; ++seed) check(random_costs(seed, 12, 50));
}

TEST_CASE("the partition by cost handles extremes", "[passes]") {
  check(costs(8, 0));
  check(costs(8, 7));
  check({0, 0, 0, 9, 0, 0, 0});
  check({9, 0, 0, 0, 0, 0, 0});
  check({0, 0, 0, 0, 0, 0, 9});
  check({1, 2, 4, 8, 16, 32, 64, 128});
  check({128, 64, 32, 16, 8, 4, 2, 1});
  long const huge = LONG_MAX / 8;  // the sum of all still fits
  check(costs(8, huge));
  check({huge, 1, huge, 1, huge, 1, huge, 1, huge});
}

TEST_CASE("equal layers get equal stages", "[passes]") {
  std::vector<int> cuts(5);
  detail::partition_by_cost(costs(12, 100), 12, 4, cuts);
  CHECK(cuts == std::vector<int>{0, 3, 6, 9, 12});
  // 10 layers in 4 stages: no stage above 3, none far below the others.
  detail::partition_by_cost(costs(10, 100), 10, 4, cuts);
  for (std::size_t s = 0; s < 4; ++s)
    CHECK((cuts[s + 1] - cuts[s] == 2 || cuts[s + 1] - cuts[s] == 3));
}

TEST_CASE("the partition by count gives the first stages one layer more", "[passes]") {
  for (int layers = 1; layers <= 20; ++layers)
    for (int stages = 1; stages <= layers; ++stages) {
      std::vector<int> cuts(std::size_t(stages + 1));
      detail::partition_by_count(layers, stages, cuts);
      CHECK(cuts.front() == 0);
      CHECK(cuts.back() == layers);
      for (int s = 0; s < stages; ++s)
        CHECK(cuts[std::size_t(s + 1)] - cuts[std::size_t(s)] ==
              layers / stages + (s < layers % stages ? 1 : 0));
    }
}

TEST_CASE("a partition is a constant, of hundreds of layers too", "[passes]") {
  constexpr auto cuts = [] {
    struct {
      int at[9]{};
      constexpr int& operator[](int i) { return at[i]; }
      constexpr int operator[](int i) const { return at[i]; }
    } c;
    struct {
      constexpr long operator[](int i) const { return 1'000'000 + i * 997 % 1013; }
    } cost;
    detail::partition_by_cost(cost, 400, 8, c);
    return c;
  }();
  static_assert(cuts[0] == 0 && cuts[8] == 400);
  static_assert(cuts[4] >= 195 && cuts[4] <= 205);
}
