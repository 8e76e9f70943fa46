// SPDX-License-Identifier: BSL-1.0
#include "joins.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace ptx {
namespace {

/// A run of instructions without a branch or a target inside.
struct basic_block {
  int begin = 0, last = 0;  // instructions
  std::vector<int> to{}, from{};
  int number = -1;     // in post-order from the end, backwards; -1: no way leads to the end
  int dominator = -1;  // the block that post-dominates it immediately
};

bool starts(instruction const& i, char const* name) {
  return opcode_names()[std::size_t(i.opcode)].starts_with(name);
}
bool branches(instruction const& i) { return starts(i, "bra"); }
bool ends(instruction const& i) { return starts(i, "ret") || starts(i, "exit"); }

/// The blocks of a kernel in order, and one more: its end.
std::vector<basic_block> blocks_of(kernel const& k) {
  int const count = int(k.code.size());
  std::vector<char> begins(std::size_t(count) + 1, 0);
  begins[0] = begins[std::size_t(count)] = 1;
  for (int i = 0; i < count; ++i) {
    instruction const& x = k.code[std::size_t(i)];
    if (branches(x)) begins[std::size_t(x.number)] = 1;
    if (branches(x) || ends(x)) begins[std::size_t(i) + 1] = 1;
  }
  std::vector<basic_block> all;
  std::vector<int> block_at(std::size_t(count) + 1);
  for (int i = 0; i <= count; ++i) {
    if (begins[std::size_t(i)] != 0) all.push_back({i, i});
    all.back().last = i;
    block_at[std::size_t(i)] = int(all.size()) - 1;
  }
  int const end = int(all.size()) - 1;
  for (int b = 0; b < end; ++b) {
    instruction const& x = k.code[std::size_t(all[std::size_t(b)].last)];
    auto const lead = [&](int to) {
      all[std::size_t(b)].to.push_back(to);
      all[std::size_t(to)].from.push_back(b);
    };
    bool const is_certain = x.guard.index < 0;
    if (branches(x)) lead(block_at[std::size_t(x.number)]);
    if (ends(x)) lead(end);
    if (!is_certain || (!branches(x) && !ends(x))) lead(b + 1);
  }
  return all;
}

/// Numbers the blocks from which a way leads to the end; they are listed by falling number.
std::vector<int> number_blocks(std::vector<basic_block>& all) {
  std::vector<int> order;
  std::vector<char> seen(all.size(), 0);
  std::vector<std::pair<int, std::size_t>> under_way{{int(all.size()) - 1, 0}};
  seen.back() = 1;
  while (!under_way.empty()) {
    auto& [b, next] = under_way.back();
    std::vector<int> const& from = all[std::size_t(b)].from;
    if (next == from.size()) {
      all[std::size_t(b)].number = int(order.size());
      order.push_back(b);
      under_way.pop_back();
      continue;
    }
    int const to = from[next++];
    if (seen[std::size_t(to)] == 0) {
      seen[std::size_t(to)] = 1;
      under_way.push_back({to, 0});
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

void find_joins(kernel& k) {
  std::vector<basic_block> all = blocks_of(k);
  std::vector<int> const order = number_blocks(all);
  int const end = int(all.size()) - 1;
  all.back().dominator = end;
  auto const meet = [&](int a, int b) {
    while (a != b) {
      int& behind = all[std::size_t(a)].number < all[std::size_t(b)].number ? a : b;
      behind = all[std::size_t(behind)].dominator;
    }
    return a;
  };
  for (bool changes = true; changes;) {
    changes = false;
    for (int const b : order) {
      if (b == end) continue;
      int found = -1;
      for (int const to : all[std::size_t(b)].to)
        if (all[std::size_t(to)].dominator >= 0) found = found < 0 ? to : meet(found, to);
      changes = changes || found != all[std::size_t(b)].dominator;
      all[std::size_t(b)].dominator = found;
    }
  }
  for (basic_block const& b : all)
    if (b.last < int(k.code.size()) && branches(k.code[std::size_t(b.last)]) && b.dominator >= 0 &&
        b.dominator != end)
      k.code[std::size_t(b.last)].join = all[std::size_t(b.dominator)].begin;
}

}  // namespace ptx
