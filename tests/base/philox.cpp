// SPDX-License-Identifier: BSL-1.0
//
// Random numbers: the known answers of the Random123 distribution, and the uniforms made of them.
#include "catch.hpp"

#include <set>

#include <pipe/base/philox.hpp>

using namespace pp;

namespace {

constexpr bool gives(detail::philox_block counter, std::uint32_t key0, std::uint32_t key1,
                     detail::philox_block expected) {
  detail::philox_block const found = detail::philox(counter, key0, key1);
  for (int i = 0; i < 4; ++i)
    if (found.word[i] != expected.word[i]) return false;
  return true;
}

constexpr std::uint32_t ones = 0xffffffffu;
static_assert(gives({{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}}));
static_assert(gives({{ones, ones, ones, ones}}, ones, ones,
                    {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}}));
static_assert(gives({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u,
                    0x299f31d0u, {{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}}));

}  // namespace

TEST_CASE("a uniform is strictly between 0 and 1", "[base]") {
  static_assert(math::unit_uniform(0) > 0);
  static_assert(math::unit_uniform(ones) < 1);
  static_assert(math::unit_uniform(0x80000000u) > 0.5f && math::unit_uniform(0x7fffffffu) < 0.5f);
  static_assert(math::unit_uniform(0) == 1 - math::unit_uniform(ones));
  double sum = 0, squares = 0;
  constexpr int count = 100'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    double const u = math::unit_uniform(math::random_block(7, 1, i).word[0]);
    sum += u;
    squares += u * u;
  }
  CHECK(sum / count == Approx(0.5).margin(0.005));
  CHECK(squares / count - 0.25 == Approx(1.0 / 12).margin(0.005));
}

TEST_CASE("seed, stream and index all matter, in both halves", "[base]") {
  std::set<std::uint32_t> seen;
  constexpr std::uint64_t high = std::uint64_t(1) << 32;
  for (std::uint64_t seed : {std::uint64_t(0), std::uint64_t(1), high})
    for (std::uint64_t stream : {std::uint64_t(0), std::uint64_t(1), high})
      for (std::uint64_t index : {std::uint64_t(0), std::uint64_t(1), high})
        for (std::uint32_t word : math::random_block(seed, stream, index).word) seen.insert(word);
  CHECK(seen.size() == 27 * 4);
}
