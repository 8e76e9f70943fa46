// SPDX-License-Identifier: BSL-1.0
//
// What goes on in a block beside its warps' instructions: mbarriers, copies by TMA, and products by
// wgmma. What comes before what is known by clocks: the time of a block grows with each arrival,
// each wait that succeeds and each copy that lands, and a warp has seen each other warp's accesses
// until some time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program.hpp"

namespace ptx {

struct block;
struct warp;

/// For each warp, and for TMA at last: accesses until this time come before.
using clock = std::array<std::uint32_t, 33>;

/// A matrix as cuTensorMapEncodeTiled of the stand-in runtime encodes it, and as TMA reads it.
struct tensor_map {
  static constexpr std::uint64_t valid = 0x5445'4e53'4f52'2121;
  std::uint64_t magic = 0, base = 0;
  std::uint64_t strides[4] = {};  ///< bytes, from the second dimension on
  std::uint64_t extents[5] = {};
  std::uint16_t box[5] = {};
  std::uint8_t rank = 0, element_bytes = 0;
  std::uint8_t swizzle = 0;  ///< 0: none, 1: 32, 2: 64, 3: 128 bytes
};
static_assert(sizeof(tensor_map) <= 128);

/// Why cuTensorMapEncodeTiled refuses it; null: it does not.
char const* fault_of(tensor_map const& m);

struct mbarrier {
  int arrivals = 0, missing = 0;
  std::int64_t bytes = 0;  // announced, and not there
  std::uint64_t phase = 0;
  clock arriving{}, ended{};  // what those of this phase, and of phases before, had seen
  int begun_by = 0;
  std::uint32_t begun = 0;
  bool is_known = false;  // to the async proxy
};
struct polled_phase {
  std::uint32_t at = 0, parity = 0;
};
/// A copy by TMA that has not landed.
struct tensor_copy {
  tensor_map map;
  std::uint32_t to = 0, done = 0;
  std::int32_t at[5] = {};
  std::size_t bytes() const;
};

/// A warp's part of a wgmma: 16 rows.
struct product {
  /// The bytes of an operand: from, and to.
  using range = std::pair<std::uint64_t, std::uint64_t>;
  instruction const* of = nullptr;
  std::uint64_t a = 0, b = 0;
  bool adds = false, is_done = false;
  std::uint32_t group = 0;
};

struct async_work {
  int order = 0;  // 0: all as late as can be, 1: at once, else as the seed says
  std::uint32_t time = 1;
  std::uint64_t progress = 0;  // grows when something happens that another warp may wait for
  std::map<std::uint32_t, mbarrier> barriers;
  std::vector<tensor_copy> copies;
  /// When a warp has waited for its last products of these bytes.
  std::map<std::pair<int, product::range>, std::uint32_t> multiplied;
  clock fenced{};                         // of each warp: its last fence between proxies
  std::array<int, 32> registers_asked{};  // setmaxnreg, by warp
};

/// Lets warps go on whose named barriers are complete.
bool release_named_barriers(block& b, std::vector<warp>& all);
/// All warps have met.
void meet_all(block& b, std::vector<warp>& all);
/// Lands copies whose time has come; if nothing else can happen, one at least, where there is one.
bool land_some(block& b, bool must);
std::string deadlock_of(block const& b, std::vector<warp> const& all);
/// Throws error for what a block has left behind.
void end_async_work(block const& b);

}  // namespace ptx
