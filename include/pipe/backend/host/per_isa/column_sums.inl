// SPDX-License-Identifier: BSL-1.0
//
// Sums over rows: the gradients of biases, and of a norm's scale and shift. Rows are read in the
// order of memory, and the sums of a strip of columns stay in L1 cache.

/// The columns of a strip, whose sums are alive together.
inline constexpr int summed_columns = 1024;
/// Rows that are added while a vector of each of `Sums` sums is in registers. Memory is read
/// fastest in two places at once.
template <int Sums>
inline constexpr int summed_rows = Sums == 1 ? 2 : 1;

/// Adds `Rows` rows from `row` on to the sums of columns [from, to), which are whole vectors.
template <int Rows, int Sums, class T, class Term>
void sum_rows(Term const& term, extent row, extent from, extent to,
              T (&sums)[Sums][summed_columns]) {
  for (extent c = from; c < to; c += lanes<T>) {
    vec<T> sum[Sums];
#pragma GCC unroll 2
    for (int s = 0; s < Sums; ++s) sum[s] = load(sums[s] + c - from);
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) term.vector(sum, row + r, c);
#pragma GCC unroll 2
    for (int s = 0; s < Sums; ++s) save(sums[s] + c - from, sum[s]);
  }
}

/// Sums over rows of several terms of the same elements: out[s][c] (+)= sum over r of term s at (r,
/// c).
///
/// shape: term (rows, columns) -> out[s] (columns), which may be null
/// law:   each sum is over ascending rows from zero, for any number of columns; `accumulate` adds
///        the finished sum once
/// cost:  one pass over the rows in the order of memory, bound by memory; the sums of a strip of
///        summed_columns columns are in L1
///
/// Whole: columns are whole vectors; code for remaining columns is not compiled.
template <int Sums, bool Whole, class T, class Term>
void column_sums(extent rows, extent columns, Term const& term, T* const (&out)[Sums],
                 bool accumulate) {
  extent const whole = columns - columns % lanes<T>;
  for (extent from = 0; from < whole; from += summed_columns) {
    extent const to = whole - from < summed_columns ? whole : from + summed_columns;
    T sums[Sums][summed_columns] = {};
    extent r = 0;
    for (; r + summed_rows<Sums> <= rows; r += summed_rows<Sums>)
      sum_rows<summed_rows<Sums>>(term, r, from, to, sums);
    for (; r < rows; ++r) sum_rows<1>(term, r, from, to, sums);
    for (int s = 0; s < Sums; ++s)
      for (extent c = from; out[s] != nullptr && c < to; c += lanes<T>) {
        vec<T> const sum = load(sums[s] + c - from);
        save(out[s] + c, accumulate ? load(out[s] + c) + sum : sum);
      }
  }
  if constexpr (!Whole) {
    for (extent c = whole; c < columns; ++c) {
      T sum[Sums] = {};
      for (extent r = 0; r < rows; ++r) term.scalar(sum, r, c);
      for (int s = 0; s < Sums; ++s)
        if (out[s] != nullptr) out[s][c] = accumulate ? out[s][c] + sum[s] : sum[s];
    }
  }
}

/// The term in[r * stride + c].
template <class T, class V = T>
struct element_term {
  V const* in;
  extent stride;
  [[gnu::always_inline]] void vector(vec<T>* sum, extent r, extent c) const {
    sum[0] += load(in + r * stride + c);
  }
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    sum[0] += T(in[r * stride + c]);
  }
};

/// Sums of columns: out[c] (+)= sum over r of in[r * stride + c].
///
/// shape: in (rows, columns), row stride `stride` -> out (columns)
template <class T, bool Whole = false, class V = T>
PIPE_ONE_COPY void column_sums(V const* in, extent rows, extent columns, extent stride, T* out,
                               bool accumulate) {
  column_sums<1, Whole, T>(rows, columns, element_term<T, V>{in, stride}, {out}, accumulate);
}

/// The term dy x where x is not above 0, and else 0: of the gradient of a prelu's slope.
template <class T, class V = T>
struct slope_term {
  V const *dy, *x;
  extent stride;
  [[gnu::always_inline]] void vector(vec<T>* sum, extent r, extent c) const {
    vec<T> const at = load(x + r * stride + c);
    sum[0] += at > vec<T>{} ? vec<T>{} : load(dy + r * stride + c) * at;
  }
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    sum[0] += detail::slope_formula::slope_gradient(T(dy[r * stride + c]), T(x[r * stride + c]));
  }
};
/// out[c] (+)= sum over rows of the terms of a slope, for the columns c in `own`.
///
/// shape: dy, x (rows, n) -> out (n)
/// law:   as column_sums: ascending rows from zero
template <class T, bool Whole, class V = T>
PIPE_ONE_COPY void slope_sums(slope_term<T, V> term, extent rows, part_range own, T* out,
                              bool accumulate) {
  term.dy += own.begin;
  term.x += own.begin;
  column_sums<1, Whole, T>(rows, own.size(), term, {out + own.begin}, accumulate);
}

/// The terms dy * xhat and dy, xhat = (x - mean) * rstd with the row's statistics.
template <class T, class V = T>
struct norm_parameter_term {
  V const *dy, *x;
  T const* statistics;
  extent stride;
  [[gnu::always_inline]] void vector(vec<T>* sum, extent r, extent c) const {
    vec<T> const d = load(dy + r * stride + c);
    vec<T> const xhat = (load(x + r * stride + c) - statistics[2 * r]) * statistics[2 * r + 1];
    sum[0] = multiply_add(d, xhat, sum[0]);
    sum[1] += d;
  }
  [[gnu::always_inline]] void scalar(T* sum, extent r, extent c) const {
    T const d = T(dy[r * stride + c]);
    T const xhat = (T(x[r * stride + c]) - statistics[2 * r]) * statistics[2 * r + 1];
    sum[0] = multiply_add(d, xhat, sum[0]);
    sum[1] += d;
  }
};

/// dgamma[c] (+)= sum over rows of dy * xhat and dbeta[c] (+)= sum over rows of dy, for the columns
/// c in `own`.
///
/// shape: dy, x (rows, n), statistics (rows, 2) -> dgamma (n), dbeta (n); either may be null
/// law:   as column_sums: ascending rows from zero
template <class T, bool Whole, class V = T>
PIPE_ONE_COPY void norm_parameter_gradient(norm_parameter_term<T, V> term, extent rows,
                                           part_range own, T* dgamma, T* dbeta, bool accumulate) {
  term.dy += own.begin;
  term.x += own.begin;
  column_sums<2, Whole, T>(rows, own.size(), term,
                           {dgamma != nullptr ? dgamma + own.begin : nullptr,
                            dbeta != nullptr ? dbeta + own.begin : nullptr},
                           accumulate);
}
