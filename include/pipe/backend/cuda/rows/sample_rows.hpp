// SPDX-License-Identifier: BSL-1.0
//
// The draw of a token from each row of logits. A probability is an integer here, the nearest to
// exp((logit - largest logit) / temperature) times a power of two, and all later numbers are
// integers: sums do not depend on their order, and the kernel draws the same token as the host.
// Top-k and top-p are radix selections over the logits' bits, four bits at a time from the highest;
// the token is found by dividing the row into 16 parts again and again. A block has a row, and
// reads the row 2 to 21 times, mostly from the L2 cache.
#pragma once

#include <cstdint>

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/warp.hpp>
#include <pipe/base/math.hpp>
#include <pipe/base/token_draw.hpp>

namespace pp::cuda {

/// The larger of two numbers, for reductions.
struct larger_integer {
  PIPE_HD PIPE_INLINE std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return a > b ? a : b;
  }
};

/// exp(x) * 2^scale for x <= 0, rounded to the nearest integer.
///
/// law:   the same bits on a CPU and a GPU: only operations that IEEE 754 defines, and no
///        operations that a compiler may contract
/// law:   a relative error below 1e-15 before the result is rounded
/// needs: scale in [0, 52]; x is not NaN
PIPE_HD PIPE_INLINE std::uint64_t integer_exp(double x, int scale) {
  if (!(x > -38)) return 0;  // below 2^-54
#ifdef __CUDA_ARCH__
  auto const fma = [](double a, double b, double c) { return __fma_rn(a, b, c); };
#else
  auto const fma = [](double a, double b, double c) { return __builtin_fma(a, b, c); };
#endif
  // x = k ln 2 + r with the nearest integer k: adding `shift` rounds to an integer.
  constexpr double shift = 6755399441055744.0;
  double const k = fma(x, 1.4426950408889634, shift) - shift;
  double r = fma(-k, 6.93147180369123816490e-01, x);
  r = fma(-k, 1.90821492927058770002e-10, r);
  // Taylor's series of exp, to r^13 / 13!.
  double p = fma(1.0 / 6227020800.0, r, 1.0 / 479001600.0);
  p = fma(p, r, 1.0 / 39916800.0);
  p = fma(p, r, 1.0 / 3628800.0);
  p = fma(p, r, 1.0 / 362880.0);
  p = fma(p, r, 1.0 / 40320.0);
  p = fma(p, r, 1.0 / 5040.0);
  p = fma(p, r, 1.0 / 720.0);
  p = fma(p, r, 1.0 / 120.0);
  p = fma(p, r, 1.0 / 24.0);
  p = fma(p, r, 1.0 / 6.0);
  p = fma(p, r, 0.5);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  // The power of two is not subnormal: an exact product.
  auto const exponent = std::uint64_t(std::int64_t(k) + scale + 1023);
  return std::uint64_t(fma(p, __builtin_bit_cast(double, exponent << 52), 0.5));
}

/// An integer for each logit, in their order: +0 and -0 are equal.
PIPE_HD PIPE_INLINE std::uint32_t ordered(float logit) {
  std::uint32_t const bits = math::bits(logit == 0 ? 0.0f : logit);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

/// A token for each row of logits, by the law of sample(), with integers for probabilities.
///
/// shape: logits (rows, columns) -> tokens (rows), in [0, columns); or -2 - i if logit i is the
///        first logit that is NaN or +infinity, or -2 - columns if all are -infinity
/// law:   row r is a function of (logits, temperature, top-k, top-p, seed + r, place)
/// law:   top-k and top-p keep the largest logits, and of equal logits the first
/// needs: columns in [1, most_columns], settings in range
/// work:  a block has a row. If `lengths` is given, a row is a text: of its (context, columns)
///        logits the block reads the last position's, lengths[r] - 1; the token is also written to
///        ids[r][lengths[r]], if lengths[r] < context, and the length grows by one; a text of
///        length 0 has no draw, and its token is -1
struct sample_rows_kernel {
  static constexpr int threads = 512, warps = threads / warp_size;
  static constexpr int digit_bits = 4, digits = 1 << digit_bits;
  static constexpr int most_columns = 1 << 30;

  struct arguments {
    float const* logits = nullptr;
    extent rows = 0;
    int columns = 0;
    int top_k = 0;           ///< 0: all
    double temperature = 1;  ///< 0: the largest logit
    double top_p = 1;
    std::uint64_t seed = 0, place = 0;
    int* tokens = nullptr;
    int context = 1;
    int* lengths = nullptr;  ///< (rows), each in [0, context]; null: a row of logits for each token
    int* ids = nullptr;      ///< (rows, context)
  };
  static extent blocks(arguments const& a) { return a.rows; }
  struct state {
    std::uint64_t sums[digits];
  };
  struct shared {
    std::uint64_t of_warp[warps][digits], total[digits];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const r = block.position();
    int const length = a.lengths != nullptr ? a.lengths[r] : 1, n = a.columns;
    float const* const x = a.logits + (r * a.context + length - 1) * n;
    int const token = length > 0 ? draw(block, a, x, std::uint64_t(r)) : -1;
    block.part([&](int thread, state&) {
      if (thread != 0) return;
      a.tokens[r] = token;
      if (a.lengths == nullptr || token < 0 || length == a.context) return;
      a.ids[r * a.context + length] = token;
      a.lengths[r] = length + 1;
    });
  }

 private:
  static constexpr std::uint32_t least_key = 0x007fffffu;  // of -infinity

  /// The kept logits: all above a threshold, and the logits equal to the threshold up to a column.
  struct kept_logits {
    std::uint32_t threshold = 0;
    int last = 0;
    PIPE_HD PIPE_INLINE bool has(std::uint32_t key, int column) const {
      return key > threshold || (key == threshold && column <= last);
    }
  };

  template <class Block>
  PIPE_HD static int draw(Block& block, arguments const& a, float const* x, std::uint64_t row) {
    int const n = a.columns;
    // The largest logit, and n - i for the first logit i that is NaN or +infinity.
    add_up<2>(
        block, n,
        [=](int i, state& mine) {
          bool const good = x[i] < __builtin_huge_valf();
          std::uint64_t const key = good ? ordered(x[i]) : 0, bad = good ? 0 : std::uint64_t(n - i);
          mine.sums[0] = larger_integer{}(mine.sums[0], key);
          mine.sums[1] = larger_integer{}(mine.sums[1], bad);
        },
        larger_integer{});
    auto const most_key = std::uint32_t(block.shared().total[0]);
    int const bad = int(block.shared().total[1]);
    if (bad > 0) return -2 - (n - bad);
    if (most_key == least_key) return -2 - n;
    if (a.temperature == 0) {
      add_up<1>(
          block, n,
          [=](int i, state& mine) {
            std::uint64_t const here = ordered(x[i]) == most_key ? std::uint64_t(n - i) : 0;
            mine.sums[0] = larger_integer{}(mine.sums[0], here);
          },
          larger_integer{});
      return n - int(block.shared().total[0]);
    }

    double const most = double(
                     math::from_bits(most_key >> 31 != 0 ? most_key & 0x7fffffffu : ~most_key)),
                 temperature = a.temperature;
    // A sum of n weights of at most 2^scale is below 2^62.
    int scale = 62;
    for (int of = n; of > 0; of /= 2) --scale;
    if (scale > 52) scale = 52;
    auto const weight = [=](int i) {
      return integer_exp((double(x[i]) - most) / temperature, scale);
    };
    kept_logits kept{0, n - 1};
    if (a.top_k > 0 && a.top_k < n)
      kept = select(block, n, x, kept, std::uint64_t(a.top_k), [](int) { return 1; });
    if (a.top_p < 1) {
      add_up<1>(
          block, n,
          [&](int i, state& mine) {
            if (kept.has(ordered(x[i]), i)) mine.sums[0] += weight(i);
          },
          plus{});
      std::uint64_t const sum = block.shared().total[0];
      // The least integer that is not below.
      double const least = double(sum) * a.top_p;
      auto need = std::uint64_t(least);
      if (double(need) < least) ++need;
      need = need < 1 ? 1 : need > sum ? sum : need;
      kept = select(block, n, x, kept, need, weight);
    }
    std::uint64_t const random = detail::token_draw(a.seed + row, a.place);
    return find(
        block, n, [&](int i) { return kept.has(ordered(x[i]), i) ? weight(i) : std::uint64_t(0); },
        [=](std::uint64_t sum) { return product_over_2_53(2 * random + 1, sum); });
  }

  /// floor(a b / 2^53).
  ///
  /// needs: a < 2^53, b < 2^62
  PIPE_HD PIPE_INLINE static std::uint64_t product_over_2_53(std::uint64_t a, std::uint64_t b) {
    std::uint64_t const low = a * b;
#ifdef __CUDA_ARCH__
    std::uint64_t const high = __umul64hi(a, b);
#else
    __extension__ using wide = unsigned __int128;
    auto const high = std::uint64_t(wide(a) * b >> 64);
#endif
    return high << 11 | low >> 53;
  }

  /// shared().total[0 ... Count) = op over the sums of all threads; a thread's sums begin as zeros,
  /// and add(column, state) adds a column to them.
  ///
  /// needs: op is associative and commutative: then no result depends on the order
  template <int Count, class Block, class Add, class Op>
  PIPE_HD PIPE_INLINE static void add_up(Block& block, int n, Add add, Op op) {
    block.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int k = 0; k < Count; ++k) mine.sums[k] = 0;
      for (int i = thread; i < n; i += threads) add(i, mine);
    });
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k)
      reduce_lanes(block, [&](state& mine) -> std::uint64_t& { return mine.sums[k]; }, op);
    block.phase([&](int thread, state& mine) {
      if (thread % warp_size != 0) return;
      PIPE_UNROLL
      for (int k = 0; k < Count; ++k) block.shared().of_warp[thread / warp_size][k] = mine.sums[k];
    });
    block.phase([&](int thread, state&) {
      if (thread >= Count) return;
      std::uint64_t all = 0;
      for (int w = 0; w < warps; ++w) all = op(all, block.shared().of_warp[w][thread]);
      block.shared().total[thread] = all;
    });
  }

  /// The smallest set of the kept logits, the largest first, whose weights add up to `need` or
  /// more; of equal logits the first.
  ///
  /// needs: need in [1, sum of all kept weights]; equal logits have equal weights
  template <class Block, class Weight>
  PIPE_HD static kept_logits select(Block& block, int n, float const* x, kept_logits kept,
                                    std::uint64_t need, Weight weight) {
    std::uint32_t prefix = 0;
    std::uint64_t here = 0;  // sum of the chosen digit's weights
    int shift = 32;
    do {
      shift -= digit_bits;
      add_up<digits>(
          block, n,
          [&](int i, state& mine) {
            std::uint32_t const key = ordered(x[i]);
            if (key >> shift >> digit_bits != prefix || !kept.has(key, i)) return;
            int const digit = int(key >> shift) & (digits - 1);
            std::uint64_t const w = std::uint64_t(weight(i));
            PIPE_UNROLL
            for (int d = 0; d < digits; ++d) mine.sums[d] += digit == d ? w : 0;
          },
          plus{});
      int digit = digits - 1;
      for (; digit > 0 && block.shared().total[digit] < need; --digit)
        need -= block.shared().total[digit];
      here = block.shared().total[digit];
      prefix = prefix << digit_bits | std::uint32_t(digit);
    } while (shift > 0 && here > need);
    std::uint32_t const threshold = prefix << shift;
    // All kept logits that begin with this prefix, or the first of the logits that equal it.
    if (here <= need) {
      if (threshold > kept.threshold) kept = kept_logits{threshold, n - 1};
      return kept;
    }
    auto const ties = [&](int i) {
      std::uint32_t const key = ordered(x[i]);
      return key == threshold && kept.has(key, i) ? std::uint64_t(weight(i)) : std::uint64_t(0);
    };
    int const last = find(block, n, ties, [=](std::uint64_t) { return need - 1; });
    return kept_logits{threshold, last};
  }

  /// The first column at which the sum of weights is above place(sum of all).
  ///
  /// needs: place(sum) < sum
  template <class Block, class Weight, class Place>
  PIPE_HD static int find(Block& block, int n, Weight weight, Place place) {
    int begin = 0, end = n;
    std::uint64_t target = 0;
    bool is_first = true;
    // A part of the row for each warp, in order; then again, for the part that has the column.
    do {
      int const part = ((end - begin) / (warps * warp_size) + 1) * warp_size;
      block.part([&](int thread, state& mine) {
        int const from = begin + thread / warp_size * part,
                  until = from + part < end ? from + part : end;
        mine.sums[0] = 0;
        for (int i = from + thread % warp_size; i < until; i += warp_size)
          mine.sums[0] += weight(i);
      });
      reduce_lanes(block, [](state& mine) -> std::uint64_t& { return mine.sums[0]; }, plus{});
      block.phase([&](int thread, state& mine) {
        if (thread % warp_size == 0) block.shared().of_warp[thread / warp_size][0] = mine.sums[0];
      });
      if (is_first) {
        std::uint64_t sum = 0;
        for (int w = 0; w < warps; ++w) sum += block.shared().of_warp[w][0];
        target = place(sum);
        is_first = false;
      }
      int w = 0;
      for (; w < warps - 1 && block.shared().of_warp[w][0] <= target; ++w)
        target -= block.shared().of_warp[w][0];
      begin += w * part;
      end = begin + part < end ? begin + part : end;
      block.phase([](int, state&) {});  // all have read the sums
    } while (end - begin > warp_size);
    while (begin < end - 1) {
      std::uint64_t const here = weight(begin);
      if (here > target) break;
      target -= here, ++begin;
    }
    return begin;
  }
};

}  // namespace pp::cuda
