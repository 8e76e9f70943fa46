// SPDX-License-Identifier: BSL-1.0
//
// The objective, the score and the random numbers of the search.
#pragma once

#include <bit>
#include <climits>

#include <pipe/schedule/objective.hpp>
#include <pipe/schedule/scratch.hpp>

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
  constexpr bool operator<(score const& b) const {
    return worst != b.worst ? worst < b.worst : sum < b.sum;
  }
};

/// The start of each rank's first action and the end of its last.
struct rank_times {
  scratch<long> first, last;

  constexpr explicit rank_times(int ranks) : first(ranks, -1), last(ranks) {}
  /// Adds an action of a rank from `start` to `end`. The actions of a rank come in order.
  constexpr void add(int rank, long start, long end) {
    if (first.item[rank] < 0) first.item[rank] = start;
    last.item[rank] = end;
  }
  constexpr long of(int rank, objective want) const {
    return last.item[rank] - (want == objective::makespan ? 0 : first.item[rank]);
  }
  constexpr score total(int ranks, objective want) const {
    auto result = score{0, 0};
    for (int rank = 0; rank < ranks; ++rank) {
      long const time = of(rank, want);
      result.sum += time;
      if (time > result.worst) result.worst = time;
    }
    return result;
  }
};

/// Random numbers with a fixed seed, so that a search has one answer on every machine.
///
/// source: Marsaglia, Xorshift RNGs, 2003
struct search_dice {
  unsigned long long state = 0x9E3779B97F4A7C15u;

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
