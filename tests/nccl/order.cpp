// SPDX-License-Identifier: BSL-1.0
//
// The proof that groups of messages end, against the stand-in for NCCL: what is proved to end ends
// on devices that run one kernel at a time, and what is not, hangs.
#include "catch.hpp"

#include "nccl/group_order.hpp"
#include "nccl/ranks.hpp"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

using namespace pp::detail;

namespace {

using program = std::vector<std::vector<message_group>>;

/// Messages in one order for all, each a group at either side; then some groups are joined.
program random_program(std::mt19937& random, int ranks) {
  program p(static_cast<std::size_t>(ranks));
  for (int i = 0; i < 6; ++i) {
    int const from = int(random() % unsigned(ranks));
    int const to = (from + 1 + int(random() % unsigned(ranks - 1))) % ranks;
    long const bytes = 1 + long(random() % 2);
    p[std::size_t(from)].push_back({{to, true, bytes}});
    p[std::size_t(to)].push_back({{from, false, bytes}});
  }
  for (std::vector<message_group>& all : p)
    for (std::size_t i = 0; i + 1 < all.size(); ++i)
      if (random() % 4 == 0) {
        all[i].insert(all[i].end(), all[i + 1].begin(), all[i + 1].end());
        all.erase(all.begin() + long(i) + 1);
      }
  return p;
}
/// Whether all groups end.
bool ends(program const& p, int kernels_at_once) {
  machine_of_ranks m(int(p.size()), 1, kernels_at_once);
  std::vector<char> data(16);
  std::vector<cudaStream_t> streams;
  for (int r = 0; r < int(p.size()); ++r) {
    streams.push_back(m.stream(r));
    for (message_group const& g : p[std::size_t(r)])
      m.group(r, [&] {
        for (group_message const& x : g)
          x.is_sent ? ncclSend(data.data(), std::size_t(x.bytes), ncclInt8, x.peer, m.comm(r),
                               streams.back())
                    : ncclRecv(data.data(), std::size_t(x.bytes), ncclInt8, x.peer, m.comm(r),
                               streams.back());
      });
  }
  for (cudaStream_t const s : streams) cudaStreamSynchronize(s);
  bool is_good = m.hang().empty();
  for (int r = 0; r < int(p.size()); ++r) is_good = is_good && m.state(r) == ncclSuccess;
  return is_good;
}

bool exchange_ends(bool is_one_group) {
  program p(2);
  for (int r = 0; r < 2; ++r) {
    message_group const both{{1 - r, true, 8}, {1 - r, false, 8}};
    if (is_one_group)
      p[std::size_t(r)] = {both};
    else
      p[std::size_t(r)] = {{both[0]}, {both[1]}};
  }
  return first_group_that_hangs(p) == group_place{};
}

}  // namespace

TEST_CASE("groups that are proved to end do so, and others hang") {
  CHECK(exchange_ends(true));
  CHECK_FALSE(exchange_ends(false));
  std::mt19937 random(5);
  long good = 0, bad = 0;
  for (int i = 0; i < 400; ++i) {
    program p = random_program(random, 2 + i % 3);
    if (i % 2 == 1) {  // with two groups of a rank the other way round
      std::vector<message_group>& of = p[random() % p.size()];
      if (of.size() > 1) std::swap(of[0], of[1 + random() % (of.size() - 1)]);
    }
    bool const is_good = first_group_that_hangs(p) == group_place{};
    ++(is_good ? good : bad);
    INFO("program " << i);
    CHECK(ends(p, 1) == is_good);
    CHECK(ends(p, 100) == is_good);
  }
  CHECK(good > 100);
  CHECK(bad > 100);
}

TEST_CASE("the group that hangs is named") {
  // Process 2 has the group that process 0 waits for behind one that never ends.
  program const p{{{{2, true, 8}}},
                  {{{2, true, 8}}, {{2, false, 8}}},
                  {{{1, false, 8}}, {{1, false, 8}}, {{0, false, 8}}}};
  CHECK(first_group_that_hangs(p) == group_place{0, 0});
  CHECK(first_group_that_hangs({{{{1, true, 8}}}, {{{0, false, 9}}}}) == group_place{0, 0});
  CHECK(first_group_that_hangs({{{}}, {}}) == group_place{});
  CHECK(first_group_that_hangs({{{{0, true, 8}, {0, false, 8}}}}) == group_place{});
}
