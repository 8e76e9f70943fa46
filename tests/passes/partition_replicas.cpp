// SPDX-License-Identifier: BSL-1.0
//
// Cuts for stages that several ranks run, and numbers of ranks for stages: as good as the best of
// all, found by trying every one.
#include "catch.hpp"

#include <algorithm>
#include <climits>
#include <random>
#include <vector>

#include <pipe/passes/partition.hpp>
#include <pipe/passes/partition_replicas.hpp>

using namespace pp;

namespace {

using numbers = std::vector<long>;
using counts = std::vector<int>;

/// The time of the slowest rank if layers [from, end) are the stages from number s on, in the best
/// of all cuts.
long best_by_trial(numbers const& costs, counts const& ranks, std::size_t from, std::size_t s) {
  long sum = 0, best = LONG_MAX;
  std::size_t const stages_after = ranks.size() - 1 - s;
  for (std::size_t end = from + 1; end + stages_after <= costs.size(); ++end) {
    sum += costs[end - 1];
    if (stages_after == 0 && end < costs.size()) continue;
    long const time = (sum + ranks[s] - 1) / ranks[s];
    best = std::min(
        best, stages_after == 0 ? time : std::max(time, best_by_trial(costs, ranks, end, s + 1)));
  }
  return best;
}
/// The same with the best of all distributions of `left` ranks over the stages from number s on.
long best_of_all_counts(numbers const& costs, counts& ranks, std::size_t s, int left) {
  if (s + 1 == ranks.size()) return ranks[s] = left, best_by_trial(costs, ranks, 0, 0);
  long best = LONG_MAX;
  for (int n = 1; n + int(ranks.size() - s) - 1 <= left; ++n) {
    ranks[s] = n;
    best = std::min(best, best_of_all_counts(costs, ranks, s + 1, left - n));
  }
  return best;
}
long slowest(numbers const& costs, counts const& ranks) {
  int const layers = int(costs.size()), stages = int(ranks.size());
  counts cuts(std::size_t(stages + 1), -1);
  detail::partition_for_ranks(costs, layers, stages, ranks, cuts);
  REQUIRE(cuts.front() == 0);
  REQUIRE(cuts.back() == layers);
  long most = 0;
  for (std::size_t s = 0; s < ranks.size(); ++s) {
    REQUIRE(cuts[s] < cuts[s + 1]);
    long sum = 0;
    for (int i = cuts[s]; i < cuts[s + 1]; ++i) sum += costs[std::size_t(i)];
    most = std::max(most, (sum + ranks[s] - 1) / ranks[s]);
  }
  return most;
}

class chance {
 public:
  int operator()(int from, int to) { return from + int(engine_() % unsigned(to - from + 1)); }
  numbers costs(int layers) {
    numbers c;
    for (int i = 0; i < layers; ++i) c.push_back(operator()(0, 3) == 0 ? 0 : operator()(1, 20));
    return c;
  }

 private:
  std::mt19937 engine_{3};
};

}  // namespace

TEST_CASE("cuts for stages on several ranks are the best of all") {
  chance roll;
  for (int tried = 0; tried < 4000; ++tried) {
    numbers const c = roll.costs(roll(1, 8));
    counts ranks(std::size_t(roll(1, std::min(4, int(c.size())))));
    for (int& r : ranks) r = roll(1, 4);
    REQUIRE(slowest(c, ranks) == best_by_trial(c, ranks, 0, 0));
  }
  // A greedy cut fills the first stage, and finds no room for the large layer in the second.
  REQUIRE(slowest({1, 1, 8}, {2, 1, 8}) == 1);
}
TEST_CASE("with one rank for each stage, the cut is as good as that for stages") {
  chance roll;
  for (int tried = 0; tried < 300; ++tried) {
    numbers const c = roll.costs(roll(1, 40));
    int const stages = roll(1, int(c.size()));
    REQUIRE(slowest(c, counts(std::size_t(stages), 1)) ==
            detail::least_bottleneck(c, int(c.size()), stages));
  }
}
TEST_CASE("numbers of ranks for stages are the best of all") {
  chance roll;
  for (int tried = 0; tried < 600; ++tried) {
    numbers const c = roll.costs(roll(1, 8));
    int const stages = roll(1, std::min(4, int(c.size()))), all = stages + roll(0, 4);
    counts chosen(std::size_t(stages), -1), trial(std::size_t(stages), 1);
    detail::choose_ranks(c, int(c.size()), stages, all, chosen);
    int sum = 0;
    for (int n : chosen) {
      REQUIRE(n >= 1);
      sum += n;
    }
    REQUIRE(sum == all);
    REQUIRE(slowest(c, chosen) == best_of_all_counts(c, trial, 0, all));
  }
}
