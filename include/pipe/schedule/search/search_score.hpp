// SPDX-License-Identifier: BSL-1.0
//
// The score and the random numbers of the search.
#pragma once

#include <bit>
#include <climits>

namespace pp {

namespace detail {

/// The score of an order; smaller is better.
///
/// law:   `sum` decides between equal `worst`
/// needs: P times the time of a step is below 2^62
struct score {
  long worst = LONG_MAX / 2;  ///< the maximum of the ranks' times under the objective
  long sum = LONG_MAX / 2;    ///< the sum of the ranks' times

  /// False for an order that deadlocks or was not timed to its end.
  constexpr bool possible() const { return worst < LONG_MAX / 2; }
  constexpr void add(long time) {
    sum += time;
    if (time > worst) worst = time;
  }
  constexpr bool operator<(score const& b) const {
    return worst != b.worst ? worst < b.worst : sum < b.sum;
  }
  friend constexpr bool operator==(score const&, score const&) = default;
};

/// Random numbers with a fixed seed, so that a search has one answer on every machine.
///
/// source: Marsaglia, Xorshift RNGs, 2003
struct search_dice {
  unsigned long long state = 0x9E3779B97F4A7C15u;

  search_dice() = default;
  /// Another sequence for every `seed`.
  constexpr explicit search_dice(int seed) {
    state += static_cast<unsigned long long>(seed) * 0xD1342543DE82EF95u;
    for (int i = 0; i < 8; ++i) bits();
  }

  /// The next 64 random bits.
  constexpr unsigned long long bits() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state >> 8;
  }
  /// A number in [0, count). needs: count > 0
  constexpr int below(int count) { return static_cast<int>(bits() % static_cast<unsigned>(count)); }

  /// -ln of a uniform number in (0, 1), in units of 1/256, within 6 %: from the number's trailing
  /// zeros, with linear interpolation between powers of two.
  constexpr long exponential() {
    constexpr long ln_2 = 177;  // in 1/256
    unsigned long long const x = bits();
    long const zeros = std::countr_zero(x | 1ull << 40), within = static_cast<long>(x >> 44 & 255);
    return ((zeros + 1) * 256 - within) * ln_2 / 256;
  }
};

}  // namespace detail

}  // namespace pp
