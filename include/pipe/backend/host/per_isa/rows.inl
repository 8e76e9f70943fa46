// SPDX-License-Identifier: BSL-1.0
//
// Reductions along rows, for norms, softmax and losses. A row is in L1 cache between its passes.
// Each function of a row is compiled once for all groups, so that equal rows give equal bits
// wherever they are computed.

/// Sums over a row of several terms of the same elements: total[s] = sum over i < n of term s at i.
///
/// law:  the order of additions depends on n and sum_lanes only: four sets of sum_lanes partial
///       sums side by side (remaining whole sets go to the first), a tree over all, then the last
///       elements in order
/// cost: four sets, because an addition takes as long as several loads
///
/// Whole: n is a multiple of the lanes; code for remaining elements is not compiled.
template <int Sums, bool Whole, class T, class Term>
void row_sums(int n, Term const& term, T (&total)[Sums]) {
  constexpr int Lanes = lanes<T>, Wide = sum_vectors, Together = 4 * Wide;
  vec<T> sum[Together][Sums] = {};
  int i = 0;
  for (; i + Together * Lanes <= n; i += Together * Lanes) {
#pragma GCC unroll 8
    for (int k = 0; k < Together; ++k) term.vector(sum[k], i + k * Lanes);
  }
  for (; i + Wide * Lanes <= n; i += Wide * Lanes) {
#pragma GCC unroll 2
    for (int k = 0; k < Wide; ++k) term.vector(sum[k], i + k * Lanes);
  }
  for (int s = 0; s < Sums; ++s) {
    partial_sums<T> all;
    for (int k = 0; k < Wide; ++k)
      all.part[k] = (sum[k][s] + sum[Wide + k][s]) + (sum[2 * Wide + k][s] + sum[3 * Wide + k][s]);
    total[s] = total_of(all);
  }
  if constexpr (!Whole || Wide > 1)
    for (; i < n; ++i) term.scalar(total, i);
}
template <class T, bool Whole, class Term>
T row_sum(int n, Term const& term) {
  T total[1];
  row_sums<1, Whole, T>(n, term, total);
  return total[0];
}

/// The terms of row_sums. plain_term: x_i; square_term: (x_i - mean)^2; product_term: x_i * y_i.
template <class T>
struct plain_term {
  T const* x;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const { sum[0] += load(x + i); }
  [[gnu::always_inline]] void scalar(T* sum, int i) const { sum[0] += x[i]; }
};
template <class T>
struct square_term {
  T const* x;
  T mean;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const {
    vec<T> const d = load(x + i) - mean;
    sum[0] = multiply_add(d, d, sum[0]);
  }
  [[gnu::always_inline]] void scalar(T* sum, int i) const {
    sum[0] = multiply_add(x[i] - mean, x[i] - mean, sum[0]);
  }
};
template <class T>
struct product_term {
  T const *x, *y;
  [[gnu::always_inline]] void vector(vec<T>* sum, int i) const {
    sum[0] = multiply_add(load(x + i), load(y + i), sum[0]);
  }
  [[gnu::always_inline]] void scalar(T* sum, int i) const {
    sum[0] = multiply_add(x[i], y[i], sum[0]);
  }
};
/// 1 / sqrt(x), by two correctly rounded operations.
template <class T>
T reciprocal_sqrt(T x) {
  return T(1) / libm::sqrt(x);
}

/// out[i] = e^(x[i] - top), i < N.
template <int N, class T>
void shifted_exp(T const* x, T top, T* out) {
  PIPE_INDEPENDENT
  for (int i = 0; i < N; ++i) out[i] = math::exp<products>(x[i] - top);
}

/// The sum of a row's e^(x - max), and the log of the sum of e^x.
template <class T>
struct row_exponentials {
  T sum = 0;
  double log_of_all = 0;
};
/// e[i] = e^(x[i] - top), top = the row's largest element, so that no exponential overflows.
///
/// shape:   x (N) -> e (N)
/// returns: sum of e, and log of the sum of e^x, which is log(sum) + top; in double, as losses
///          subtract a logit from it
template <int N, class T>
row_exponentials<T> exponentials_of(T const* x, T* e) {
  constexpr int L = lanes<T>, whole = N / L * L, rest = N - whole;
  T top = x[0];
  for (int i = 1; i < N; ++i) top = x[i] > top ? x[i] : top;
  for (int i = 0; i < whole; i += L) shifted_exp<L>(x + i, top, e + i);
  if constexpr (rest > 0) shifted_exp<rest>(x + whole, top, e + whole);
  T const sum = row_sum<T, (rest == 0)>(N, plain_term<T>{e});
  return {sum, libm::log(double(sum)) + double(top)};
}
