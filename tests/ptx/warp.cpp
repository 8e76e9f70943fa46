// SPDX-License-Identifier: BSL-1.0
#include "warp.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "counts.hpp"

namespace ptx {
namespace {

unsigned value_of(special s, block const& b, unsigned thread) {
  switch (s) {
    case special::tid_x: return thread % b.threads.x;
    case special::tid_y: return thread / b.threads.x % b.threads.y;
    case special::tid_z: return thread / b.threads.x / b.threads.y;
    case special::ntid_x: return b.threads.x;
    case special::ntid_y: return b.threads.y;
    case special::ntid_z: return b.threads.z;
    case special::ctaid_x: return b.index.x;
    case special::ctaid_y: return b.index.y;
    case special::ctaid_z: return b.index.z;
    case special::nctaid_x: return b.grid.x;
    case special::nctaid_y: return b.grid.y;
    case special::nctaid_z: return b.grid.z;
    case special::laneid: return thread % warp_size;
    case special::warpid: return thread / warp_size;
    case special::lanemask_eq: return 1u << thread % warp_size;
    case special::lanemask_lt: return (1u << thread % warp_size) - 1;
    case special::lanemask_le: return all_lanes >> (31 - thread % warp_size);
    case special::lanemask_gt: return ~(all_lanes >> (31 - thread % warp_size));
    case special::lanemask_ge: return all_lanes << thread % warp_size;
  }
  return 0;
}

}  // namespace

void warp::begin(block& b, int first) {
  in = &b;
  first_thread = first;
  paths.clear();
  waits = has_followed = polls = has_batch = false;
  meetings = product_groups = 0;
  seen.fill(0);
  products.clear();
  reduction = nullptr;
  registers.resize(b.of.register_bytes);
  known.assign(b.of.registers.size(), 0);
  known_low = known;
  local.assign(b.of.local_bytes * warp_size, 0xff);
  copies.clear();
  groups.fill(0);
  int const threads = int(b.threads.x * b.threads.y * b.threads.z),
            here = std::min(warp_size, threads - first);
  alive = here == warp_size ? all_lanes : (lanes(1) << here) - 1;
  paths.push_back({0, alive, -1});
  for (auto const& [which, o] : b.of.specials) {
    auto* const values = write<std::uint32_t>(o, all_lanes);
    for (int l = 0; l < warp_size; ++l) values[l] = value_of(which, b, unsigned(first + l));
  }
}

void warp::fail_unknown(operand const& o) const {
  throw error("register " + in->of.register_names[std::size_t(o.index)] +
              " is read, and nothing wrote it");
}

void warp::require_all(lanes active, char const* what) {
  if (active != alive) throw error(std::string(what) + " by some lanes of a warp only");
}

void warp::jump(int target, int join, lanes active) {
  path const here = paths.back();
  if (active == here.active) {
    paths.back().at = target;
    return;
  }
  if (join < 0) join = here.join;
  // A path that ends where these two meet needs not wait for them there: in loops it would be one
  // more in every turn.
  if (join == here.join)
    paths.pop_back();
  else
    paths.back().at = join;
  paths.push_back({here.at, here.active & ~active, join});
  paths.push_back({target, active, join});
}

void warp::vote_at_barrier(instruction const& i, lanes active, bool vote) {
  block::vote& v = in->votes[in->barriers % 2];
  if (v.at != in->barriers) v = {in->barriers};
  v.some |= vote;
  reduction = &i;
  reduces = active;
}
void warp::take_reduction() {
  bool const some = in->votes[(in->barriers - 1) % 2].some;
  set(reduction->of[0], some ? all_lanes : 0, reduces);
  reduction = nullptr;
}

void warp::leave(lanes active) {
  if (in->is_early && !has_followed)
    throw error("a kernel that was launched early ends without griddepcontrol.wait");
  if (!products.empty()) throw error("a warp ends before its products, which it must wait for");
  alive &= ~active;
  for (path& p : paths) p.active &= ~active;
}

void warp::run() {
  kernel const& k = in->of;
  waits = polls = false;
  if (reduction != nullptr) take_reduction();
  while (alive != 0 && !waits && !polls) {
    while (paths.back().is_done()) paths.pop_back();
    path& p = paths.back();
    if (p.at >= int(k.code.size())) throw error(k.name + ": its end is reached without ret");
    instruction const& i = k.code[std::size_t(p.at++)];
    lanes active = p.active;
    try {
      if (i.guard.index >= 0) {
        lanes const taken = holds(i.guard, active);
        active = i.guard_is_negated ? active & ~taken : taken;
      }
      if (active != 0) {
        if (in->counted != nullptr) in->counted->add(*this, i, active);
        i.run(*this, i, active);
      }
    } catch (error const& e) {
      throw error(std::string(e.what()) + "\n  at line " + std::to_string(i.line) + ": " +
                  k.text[std::size_t(&i - k.code.data())] + "\n  in block " +
                  std::to_string(in->index.x) + ", warp " +
                  std::to_string(first_thread / warp_size) + " of " + k.name);
    }
  }
}

namespace {

/// `many` of n blocks, all of them if that is 0 or more than n: multiples of the golden ratio fall
/// evenly on any part and any period of a grid.
std::set<std::uint64_t> blocks_of(std::uint64_t n, unsigned many) {
  std::set<std::uint64_t> chosen;
  double at = 0.5;
  while (many != 0 && many < n && chosen.size() < many) {
    chosen.insert(std::uint64_t(at * double(n)));
    at += 0.6180339887498949;
    at -= std::floor(at);
  }
  return chosen;
}

/// Whether warps wait: then all of them do, at the same instruction.
bool wait_at_one_barrier(std::vector<warp> const& all) {
  warp const& first = all.front();
  for (warp const& w : all) {
    if ((w.alive != 0) != (first.alive != 0))
      throw error(first.in->of.name + ": some warps of block " + std::to_string(first.in->index.x) +
                  " wait at a barrier, and others have ended");
    if (w.alive != 0 && w.paths.back().at != first.paths.back().at)
      throw error(first.in->of.name + ": warps of block " + std::to_string(first.in->index.x) +
                  " wait at different barriers, of lines " + std::to_string(w.line()) + " and " +
                  std::to_string(first.line()));
  }
  return first.alive != 0;
}

}  // namespace

void launch(kernel const& k, global_memory const& global, dimensions grid, dimensions threads,
            std::size_t shared_bytes, unsigned char const* parameters, int order, sample s,
            bool is_early) {
  int const count = int(threads.x * threads.y * threads.z),
            warps = (count + warp_size - 1) / warp_size;
  if (count > k.most_threads) throw error(k.name + ": more threads than its .maxntid");
  if (s.skips) return;
  std::mt19937 random{unsigned(order)};
  static shared_memory shared;  // its time goes on, from launch to launch
  static std::uint32_t barriers = 0;
  std::vector<warp> all(static_cast<std::size_t>(warps));
  std::vector<int> turn(static_cast<std::size_t>(warps));
  for (int w = 0; w < warps; ++w) turn[std::size_t(w)] = order == 1 ? warps - 1 - w : w;
  auto const run_block = [&](std::uint64_t at) {
    unsigned const x = unsigned(at % grid.x), y = unsigned(at / grid.x % grid.y),
                   z = unsigned(at / grid.x / grid.y);
    block b{k, global, parameters, grid, threads, {x, y, z}, shared, s.into, ++barriers, is_early};
    if (s.into != nullptr) ++s.into->counted_blocks;
    shared.begin(k.shared_bytes + shared_bytes, b.barriers);
    for (int w = 0; w < warps; ++w) all[std::size_t(w)].begin(b, w * warp_size);
    b.work.order = order;
    for (bool some = true; some;) {
      if (order > 1) std::shuffle(turn.begin(), turn.end(), random);
      std::uint64_t const before = b.work.progress;
      for (int const w : turn)
        if (warp& one = all[std::size_t(w)]; one.alive != 0 && !one.waits) one.run();
      if (release_named_barriers(b, all)) continue;
      if (std::all_of(all.begin(), all.end(),
                      [](warp const& w) { return w.alive == 0 || (w.waits && w.barrier == 0); })) {
        some = wait_at_one_barrier(all);
        b.barriers = ++barriers;
        meet_all(b, all);
        for (warp& w : all) w.waits = false;
      } else {
        bool const is_stuck = b.work.progress == before;
        if (!land_some(b, is_stuck) && is_stuck) throw error(deadlock_of(b, all));
      }
    }
    end_async_work(b);
  };
  std::uint64_t const blocks = std::uint64_t(grid.x) * grid.y * grid.z;
  if (std::set<std::uint64_t> const chosen = blocks_of(blocks, s.blocks); !chosen.empty())
    for (std::uint64_t const at : chosen) run_block(at);
  else
    for (std::uint64_t at = 0; at < blocks; ++at) run_block(order == 1 ? blocks - 1 - at : at);
}

}  // namespace ptx
