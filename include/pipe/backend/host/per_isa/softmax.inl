// SPDX-License-Identifier: BSL-1.0
//
// Softmax along a row as a layer of its own, and its gradient. (The softmax of attention scores is
// in the attention kernels, the softmax of logits is in the losses.)

/// y = e^(x - max) / (sum of e^(x - max) over the row). A NaN in x makes the row NaN.
///
/// shape: x (N) -> y (N)
/// law:   the order of the sum depends on N and sum_lanes only
template <int N, class T>
PIPE_ONE_COPY void softmax_forward_row(T const* x, T* y) {
  constexpr int L = lanes<T>, whole = N / L * L, rest = N - whole;
  constexpr bool is_whole = rest == 0;
  vec<T> tops = vec<T>{} + x[0];
  for (int i = 0; i < whole; i += L) tops = load(x + i) > tops ? load(x + i) : tops;
  T top = fold_lanes<larger, T>(tops);
  for (int i = whole; i < N; ++i) top = x[i] > top ? x[i] : top;
  for (int i = 0; i < whole; i += L) shifted_exp<L>(x + i, top, y + i);
  if constexpr (rest > 0) shifted_exp<rest>(x + whole, top, y + whole);
  T const factor = T(1) / row_sum<T, is_whole>(N, plain_term<T>{y});
  for (int i = 0; i < whole; i += L) save(y + i, load(y + i) * factor);
  for (int i = whole; i < N; ++i) y[i] *= factor;
}

/// dx = y * (dy - sum of dy * y over the row)
///
/// shape: dy, y (n) -> dx (n)
template <class T, bool Whole>
PIPE_ONE_COPY void softmax_gradient_row(int n, T const* dy, T const* y, T* dx) {
  T const mean = row_sum<T, Whole>(n, product_term<T>{dy, y});
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) save(dx + i, load(y + i) * (load(dy + i) - mean));
  if constexpr (!Whole)
    for (; i < n; ++i) dx[i] = y[i] * (dy[i] - mean);
}

/// Softmax of every row.
///
/// shape: x (rows, C) -> y (rows, C)
/// work:  parts own rows; a row stays in L1 for its three passes
template <>
struct kernel_of<op_kind::softmax> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    T* const buffer = static_cast<T*>(a.workspace);
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = k::result_row(a, r, buffer);
      softmax_forward_row<g.columns, T>(k::main_row(a, r, buffer + g.columns), y);
      finish_row<P, G>(a, r, y);
    }
  }
};

/// The gradient of a softmax, from the result y, not the input.
///
/// shape: dy, y (rows, C) -> dx (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::softmax_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    T* const buffer = static_cast<T*>(a.workspace);
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const dx = k::result_row(a, r, buffer);
      softmax_gradient_row<T, k::whole>(
          g.columns, k::row_of(a, g.in[0], r, g.columns, buffer + g.columns),
          k::row_of(a, g.in[1], r, g.columns, buffer + 2 * g.columns), dx);
      finish_row<P, G>(a, r, dx);
    }
  }
};
