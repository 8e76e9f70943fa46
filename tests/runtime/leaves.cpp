// SPDX-License-Identifier: BSL-1.0
//
// The tree in which leaves are added: one by one, all at once, and in parts that replicas have.
#include <catch2/catch.hpp>

#include <pipe/runtime/shards.hpp>

#include <string>
#include <vector>

using namespace pp::detail;

namespace {

/// The sum of leaves [first, first + count), in brackets, if they come one by one.
std::string one_by_one(int first, int count) {
  std::vector<std::string> partial(std::size_t(levels_of(count)));
  std::string sum;
  for (int i = 0; i < count; ++i) {
    sum = std::to_string(first + i);
    join_leaf(
        i, count, [&](int k) { sum = "(" + partial[std::size_t(k)] + "+" + sum + ")"; },
        [&](int k) { partial[std::size_t(k)] = sum; });
  }
  return sum;
}
std::string all_at_once(std::vector<std::string> leaves) {
  join_leaves(int(leaves.size()), [&](int to, int from) {
    leaves[std::size_t(to)] = "(" + leaves[std::size_t(to)] + "+" + leaves[std::size_t(from)] + ")";
  });
  return leaves[0];
}

}  // namespace

TEST_CASE("leaves that come one by one are added in a balanced tree") {
  CHECK(one_by_one(0, 1) == "0");
  CHECK(one_by_one(0, 2) == "(0+1)");
  CHECK(one_by_one(0, 8) == "(((0+1)+(2+3))+((4+5)+(6+7)))");
}
TEST_CASE("replicas that divide the leaves add them in the same tree") {
  for (int leaves : {1, 2, 4, 8, 16, 64})
    for (int replicas = 1; replicas <= leaves; replicas *= 2) {
      std::vector<std::string> parts;
      for (int r = 0; r < replicas; ++r)
        parts.push_back(one_by_one(r * leaves / replicas, leaves / replicas));
      CHECK(all_at_once(parts) == one_by_one(0, leaves));
    }
}
TEST_CASE("any number of replicas is added, each once") {
  CHECK(all_at_once({"a", "b", "c"}) == "((a+b)+c)");
  CHECK(all_at_once({"a", "b", "c", "d", "e", "f", "g"}) == "(((a+b)+(c+d))+((e+f)+g))");
}
TEST_CASE("a replica has room for the levels of its own leaves") {
  CHECK(levels_of(1) == 0);
  CHECK(levels_of(8) == 3);
  rank_description rank;
  rank.level_bytes = 640;
  rank.fixed_bytes = 10'000;
  auto const end = [&](int leaves, int replicas) {
    return end_of_arena({nullptr, 0, leaves, 0, 4}, rank, 0, replicas, 0).end;
  };
  CHECK(end(8, 1) == 10'000 + 3 * 640);
  CHECK(end(8, 8) == 10'000);
  CHECK(end(1, 5) == 10'000);
}
