// SPDX-License-Identifier: BSL-1.0
//
// Sampling of a token from a model's logits: functions over spans that can be combined, and
// sample(), the usual combination.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/token_draw.hpp>
#include <pipe/metrics/argmax.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// Rejects logit i of `count`, x.
[[noreturn, gnu::cold]] inline void reject_logit(long i, long count, double x) {
  throw_error<not_finite>(
      {"logit ", i, " of ", count, ": expected a finite number or -infinity, got ", x});
}
/// Rejects logits that are all -infinity.
[[noreturn, gnu::cold]] inline void reject_logits(long count) {
  throw_error<not_finite>({"logits: expected at least 1 finite number, got none of ", count});
}

/// The largest logit; -infinity is allowed, for tokens that are excluded.
///
/// throws: not_finite if one is NaN or +infinity, or all are -infinity
/// cost:   one pass; in double, which holds every float exactly
template <class T>
double largest_logit(std::span<T const> logits) {
  double most = -__builtin_huge_val();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    double const x = double(logits[i]);
    if (!libm::isfinite(x) && !(x < 0)) reject_logit(long(i), long(logits.size()), x);
    if (x > most) most = x;
  }
  if (!libm::isfinite(most)) reject_logits(long(logits.size()));
  return most;
}

/// throws: data_error if the temperature is not a finite number above 0
inline void check_temperature(double temperature) {
  if (!(temperature > 0) || !libm::isfinite(temperature))
    throw_error<data_error>({"temperature: expected a finite number above 0, got ", temperature});
}

/// probabilities() for either type of logits. The largest logit is subtracted first, so that exp
/// does not overflow.
template <class T>
std::vector<double> probabilities_of(std::span<T const> logits, double temperature) {
  check_temperature(temperature);
  double const most = largest_logit(logits);
  std::vector<double> p(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    sum += p[i] = libm::exp((double(logits[i]) - most) / temperature);
  for (double& x : p) x /= sum;
  return p;
}

}  // namespace detail

namespace sampling {

/// Probabilities proportional to exp(logit / temperature), temperature > 0, in double.
///
/// throws: data_error for another temperature, not_finite as largest_logit does
inline std::vector<double> probabilities(std::span<float const> logits, double temperature = 1) {
  return detail::probabilities_of(logits, temperature);
}
inline std::vector<double> probabilities(std::span<double const> logits, double temperature = 1) {
  return detail::probabilities_of(logits, temperature);
}

}  // namespace sampling

namespace detail {

using namespace sampling;

/// Keeps the largest probabilities, scaled to a sum of 1, and sets the others to 0: at most k of
/// them, and only as many as are needed for a sum of at least `mass`. Of equal ones the first are
/// kept.
///
/// law:    the kept set is the smallest such set; no probability outside of it is larger than one
///         inside
/// throws: data_error if one is less than 0 or not a number, or none is above 0
/// source: Fan et al., 2018 (top-k); Holtzman et al., 2020 (top-p, nucleus sampling)
/// cost: O(V + k log V) for V probabilities of which k are kept
inline void keep_largest(std::span<double> p, std::size_t k, double mass) {
  std::vector<std::size_t> order(p.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!(p[i] >= 0))
      throw_error<data_error>(
          {"probability ", i, " of ", p.size(), ": expected 0 or more, got ", p[i]});
    order[i] = i;
  }
  auto const later = [&](std::size_t a, std::size_t b) {
    return p[a] < p[b] || (p[a] == p[b] && a > b);
  };
  std::make_heap(order.begin(), order.end(), later);
  std::vector<double> kept(p.size());
  double sum = 0;
  for (auto end = order.end(); end != order.begin() && k > 0 && sum < mass; --k) {
    std::pop_heap(order.begin(), end--, later);
    kept[*end] = p[*end];
    sum += p[*end];
  }
  if (!(sum > 0))
    throw_error<data_error>({"probabilities: expected at least 1 above 0, got none of ", p.size()});
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = kept[i] / sum;
}

}  // namespace detail

namespace sampling {

/// Keeps the k largest probabilities (top-k).
///
/// throws: data_error for k < 1 and as keep_largest does
inline void keep_top_k(std::span<double> p, int k) {
  if (k < 1) detail::throw_error<data_error>({"top-k: expected 1 or more, got ", k});
  detail::keep_largest(p, std::size_t(k), std::numeric_limits<double>::infinity());
}
/// Keeps the fewest probabilities whose sum is at least `mass` in (0, 1] (top-p, nucleus sampling).
///
/// throws: data_error for a mass outside (0, 1] and as keep_largest does
inline void keep_top_p(std::span<double> p, double mass) {
  if (!(mass > 0) || !(mass <= 1))
    detail::throw_error<data_error>({"top-p: expected a number above 0 and up to 1, got ", mass});
  detail::keep_largest(p, p.size(), mass);
}

/// The index at which the cumulative probability exceeds u in [0, 1); never one of probability 0.
/// -1 if all are 0.
/// If rounding keeps the sum of all at or below u: the last one of a probability above 0.
///
/// cost: O(V), up to the drawn index
inline int draw_index(std::span<double const> p, double u) {
  double sum = 0;
  int last = -1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] > 0)) continue;
    last = int(i);
    if ((sum += p[i]) > u) break;
  }
  return last;
}

}  // namespace sampling

namespace detail {

/// The settings of sample(). By default a token is drawn from the model's own distribution.
struct sampling_settings {
  /// Divides the logits; 0: always the largest logit, the first of equal ones.
  double temperature = 1;
  int top_k = 0;     ///< only the k most likely tokens; 0: all
  double top_p = 1;  ///< of these only the fewest with at least this probability in sum
  std::uint64_t seed = 0;
};

/// throws: data_error if a setting is out of range
inline void check_sampling(sampling_settings const& s) {
  if (s.top_k < 0) throw_error<data_error>({"top-k: expected 0 or more, got ", s.top_k});
  if (!(s.top_p > 0) || !(s.top_p <= 1))
    throw_error<data_error>({"top-p: expected a number above 0 and up to 1, got ", s.top_p});
  if (s.temperature != 0) check_temperature(s.temperature);
}

/// sample() for either type of logits: temperature, then top-k, then top-p, then one draw of 52
/// bits.
///
/// law:    one block of Philox for (seed, place), so a place's token does not depend on the tokens
///         drawn before
/// throws: data_error if a setting is out of range, not_finite as largest_logit does
/// cost:   O(V) without top-k and top-p, O(V + k log V) with them, k being the number kept
template <class T>
int sample_of(std::span<T const> logits, sampling_settings const& s, std::uint64_t place) {
  check_sampling(s);
  if (s.temperature == 0) {
    // For its checks only.
    largest_logit(logits);
    return argmax(logits);
  }
  std::vector<double> p = probabilities_of(logits, s.temperature);
  if (s.top_k > 0) keep_top_k(p, s.top_k);
  if (s.top_p < 1) keep_top_p(p, s.top_p);
  // 52 bits and a half: exact in a double, and u is neither 0 nor 1.
  return draw_index(p, (double(token_draw(s.seed, place)) + 0.5) / double(std::uint64_t(1) << 52));
}

}  // namespace detail

namespace sampling {

/// Draws the token that follows these logits at a place of a text.
///
/// law: a function of (logits, settings, place) only
/// throws: data_error if a setting is out of range, not_finite as largest_logit does
inline int sample(std::span<float const> logits, detail::sampling_settings const& s,
                  std::uint64_t place) {
  return detail::sample_of(logits, s, place);
}
inline int sample(std::span<double const> logits, detail::sampling_settings const& s,
                  std::uint64_t place) {
  return detail::sample_of(logits, s, place);
}

}  // namespace sampling

}  // namespace pp
PIPE_OPTIMIZED_END
