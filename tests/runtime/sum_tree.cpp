// SPDX-License-Identifier: BSL-1.0
//
// The tree in which accumulations are added: one by one, all at once, and in parts that replicas
// have.
#include "catch.hpp"

#include <pipe/runtime/shards.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace pp::detail;

namespace {

/// The sum of accumulations [first, first + count), in brackets, if they come one by one.
std::string one_by_one(int first, int count) {
  std::vector<std::string> partial(std::size_t(levels_of(count)));
  std::string sum;
  for (int i = 0; i < count; ++i) {
    sum = std::to_string(first + i);
    join_next(
        i, count, [&](int k) { sum = "(" + partial[std::size_t(k)] + "+" + sum + ")"; },
        [&](int k) { partial[std::size_t(k)] = sum; });
  }
  return sum;
}
std::string all_at_once(std::vector<std::string> accumulations) {
  join_tree(int(accumulations.size()), [&](int to, int from) {
    accumulations[std::size_t(to)] =
        "(" + accumulations[std::size_t(to)] + "+" + accumulations[std::size_t(from)] + ")";
  });
  return accumulations[0];
}

/// A sum of accumulations in brackets, and the first of them. Sums are in the order of their
/// accumulations, as addition commutes.
using sum = std::pair<int, std::string>;
sum add(sum const& a, sum const& b) {
  return a.first < b.first ? sum(a.first, "(" + a.second + "+" + b.second + ")") : add(b, a);
}
/// The sum over replicas that run as many leaves as `counts` says, added by replica `own`; empty if
/// a replica keeps more partial sums than there is room for, or an accumulation has no replica, or
/// two.
std::string divided(std::vector<int> const& counts, int own) {
  accumulation_division const d{counts.data(), int(counts.size())};
  std::map<std::pair<int, int>, sum> branch;
  std::vector<int> runs;
  for (int r = 0; r < d.replicas; ++r) {
    int const count = counts[std::size_t(r)];
    std::vector<sum> kept(std::size_t(levels_of(count)));
    sum now;
    for (int i = 0; i < count; ++i) {
      runs.push_back(d.number_of(r, i));
      now = {runs.back(), std::to_string(runs.back())};
      stack_next(
          i, count, [&](int k) { now = add(now, kept.at(std::size_t(k))); },
          [&](int k) { kept.at(std::size_t(k)) = now; });
    }
    int place = 0;
    for_levels_of(count, [&](int level) {
      bool const is_last = level == last_level_of(count);
      branch[{r, level}] = is_last ? now : kept.at(std::size_t(place++));
    });
    if (place + 1 != branches_of(count)) return "";
  }
  std::sort(runs.begin(), runs.end());
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i] != int(i)) return "";
  d.join_into(own, [&](sum_branch const& to, sum_branch const& from) {
    sum& into = branch.at({to.replica, to.level});
    into = add(into, branch.at({from.replica, from.level}));
  });
  return branch.at({own, last_level_of(counts[std::size_t(own)])}).second;
}
/// use(counts) for all numbers of `accumulations` accumulations that `replicas` replicas may run.
template <class Use>
void for_each_division(int accumulations, int replicas, Use const& use,
                       std::vector<int> first = {}) {
  if (replicas == 1) {
    first.push_back(accumulations);
    return use(first);
  }
  for (int n = 1; n <= accumulations - replicas + 1; ++n) {
    auto next = first;
    next.push_back(n);
    for_each_division(accumulations - n, replicas - 1, use, next);
  }
}

}  // namespace

TEST_CASE("accumulations that come one by one are added in a balanced tree") {
  CHECK(one_by_one(0, 1) == "0");
  CHECK(one_by_one(0, 2) == "(0+1)");
  CHECK(one_by_one(0, 8) == "(((0+1)+(2+3))+((4+5)+(6+7)))");
}
TEST_CASE("replicas that divide the accumulations add them in the same tree") {
  for (int accumulations : {1, 2, 4, 8, 16, 64})
    for (int replicas = 1; replicas <= accumulations; replicas *= 2) {
      std::vector<std::string> parts;
      for (int r = 0; r < replicas; ++r)
        parts.push_back(one_by_one(r * accumulations / replicas, accumulations / replicas));
      CHECK(all_at_once(parts) == one_by_one(0, accumulations));
    }
}
TEST_CASE("every division of accumulations adds them in the same tree, each once") {
  for (int accumulations : {2, 8, 16})
    for (int replicas = 2; replicas <= accumulations && replicas <= 5; ++replicas)
      for_each_division(accumulations, replicas, [&](std::vector<int> const& counts) {
        std::string const tree = one_by_one(0, accumulations);
        int different = 0;
        for (int own = 0; own < replicas; ++own) different += divided(counts, own) != tree;
        if (different > 0) FAIL_CHECK(Catch::StringMaker<std::vector<int>>::convert(counts));
      });
  CHECK(divided({1, 1, 1, 1, 1, 1, 1}, 3) == all_at_once({"0", "1", "2", "3", "4", "5", "6"}));
}
TEST_CASE("a replica runs consecutive accumulations of a branch, and the first has the largest") {
  int const equal[]{4, 4}, other[]{3, 13};
  CHECK(accumulation_division{equal, 2}.number_of(1, 0) == 4);
  CHECK(accumulation_division{equal, 2}.number_of(1, 3) == 7);
  std::vector<int> runs;
  for (int i = 0; i < 3; ++i) runs.push_back(accumulation_division{other, 2}.number_of(0, i));
  CHECK(runs == std::vector<int>{12, 13, 14});
  CHECK(accumulation_division{other, 2}.number_of(1, 12) == 15);
}
TEST_CASE("even shares differ by one accumulation at most, and there is room for them") {
  for (int accumulations : {1, 4, 64})
    for (int replicas = 1; replicas <= accumulations; ++replicas) {
      int sum = 0, most = 0;
      for (int r = 0; r < replicas; ++r) {
        sum += even_share(accumulations, replicas, r);
        most = std::max(most, even_share(accumulations, replicas, r));
      }
      CHECK(sum == accumulations);
      CHECK(most == most_accumulations(accumulations, replicas, 1));
      CHECK(most_accumulations(accumulations, replicas, accumulations) ==
            accumulations - replicas + 1);
    }
  CHECK(even_share(1, 5, 4) == 1);
  CHECK(most_accumulations(1, 5, 2) == 1);
  CHECK(most_accumulations(16, 4, 2) == 8);
}
TEST_CASE("any number of replicas is added, each once") {
  CHECK(all_at_once({"a", "b", "c"}) == "((a+b)+c)");
  CHECK(all_at_once({"a", "b", "c", "d", "e", "f", "g"}) == "(((a+b)+(c+d))+((e+f)+g))");
}
TEST_CASE("a replica has room for the levels of its own accumulations") {
  CHECK(levels_of(1) == 0);
  CHECK(levels_of(8) == 3);
  rank_description rank;
  rank.level_bytes = 640;
  rank.fixed_bytes = 10'000;
  auto const end = [&](int accumulations, int replicas) {
    return end_of_arena({nullptr, 0, accumulations, 0, 4}, rank, 0, replicas, 0).end;
  };
  CHECK(end(8, 1) == 10'000 + 3 * 640);
  CHECK(end(8, 8) == 10'000);
  CHECK(end(1, 5) == 10'000);
}
