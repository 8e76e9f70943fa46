// SPDX-License-Identifier: BSL-1.0
//
// Gated units: a formula of one half of a row times the other half. There is one function for each
// formula and width, so that equal rows give equal bits wherever they are computed.

template <class F, int N, class T>
void gate_piece(T const* activated, T const* plain, T* y) {
  PIPE_INDEPENDENT
  for (int i = 0; i < N; ++i) y[i] = forward_of<F>(activated[i]) * plain[i];
}
template <class F, int N, class T>
void gate_gradient_piece(T const* dy, T const* activated, T const* plain, T* d_activated,
                         T* d_plain) {
  PIPE_INDEPENDENT
  for (int i = 0; i < N; ++i) {
    T const f = forward_of<F>(activated[i]);
    d_activated[i] =
        dy[i] * plain[i] * derivative_of<F>(F::derivative_reads_output ? f : activated[i]);
    d_plain[i] = dy[i] * f;
  }
}

/// y = f(activated) * plain, where `activated` and `plain` are the halves of one row; Gate has the
/// formula f, and which half is `activated`.
///
/// shape: x (2 * N) -> y (N)
template <class Gate, int N, class T>
[[gnu::flatten]] PIPE_ONE_COPY void gate_row(T const* x, T* y) {
  using F = typename Gate::formula;
  constexpr int block = 4 * lanes<T>, whole = N / block * block, rest = N - whole;
  T const* const activated = x + (Gate::activates_first ? 0 : N);
  T const* const plain = x + (Gate::activates_first ? N : 0);
  for (int i = 0; i < whole; i += block) gate_piece<F, block>(activated + i, plain + i, y + i);
  if constexpr (rest > 0) gate_piece<F, rest>(activated + whole, plain + whole, y + whole);
}

/// d activated = dy * plain * f'(activated), d plain = dy * f(activated), in the layout of x.
///
/// shape: dy (N), x (2 * N) -> dx (2 * N)
template <class Gate, int N, class T>
[[gnu::flatten]] PIPE_ONE_COPY void gate_gradient_row(T const* dy, T const* x, T* dx) {
  using F = typename Gate::formula;
  constexpr int block = 4 * lanes<T>, whole = N / block * block, rest = N - whole;
  constexpr int activated = Gate::activates_first ? 0 : N, plain = Gate::activates_first ? N : 0;
  for (int i = 0; i < whole; i += block)
    gate_gradient_piece<F, block>(dy + i, x + activated + i, x + plain + i, dx + activated + i,
                                  dx + plain + i);
  if constexpr (rest > 0)
    gate_gradient_piece<F, rest>(dy + whole, x + activated + whole, x + plain + whole,
                                 dx + activated + whole, dx + plain + whole);
}

/// y = f(activated) * plain, of the halves of each row of x: GLU, SwiGLU or GEGLU, depending on f.
///
/// shape:  x (rows, 2 * C) -> y (rows, C)
/// work:   parts own rows
/// source: Shazeer, GLU Variants Improve Transformer, 2020
template <>
struct kernel_of<op_kind::gate> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using layer = detail::leaf_at<g.leaf, typename P::leaves>;
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const buffer = static_cast<T*>(a.workspace);
      T* const y = k::result_row(a, r, buffer);
      gate_row<layer, g.columns, T>(k::row_of(a, g.in[0], r, 2 * g.columns, buffer + g.columns), y);
      finish_row<P, G>(a, r, y);
    }
  }
};

/// d activated = dy * plain * f'(activated) and d plain = dy * f(activated); f is recomputed.
///
/// shape: dy (rows, C / 2), x (rows, C) -> dx (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::gate_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using layer = detail::leaf_at<g.leaf, typename P::leaves>;
    constexpr int half = g.columns / 2;
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const buffer = static_cast<T*>(a.workspace);
      T* const dx = k::result_row(a, r, buffer);
      gate_gradient_row<layer, half, T>(k::row_of(a, g.in[0], r, half, buffer + 2 * g.columns),
                                        k::row_of(a, g.in[1], r, g.columns, buffer + g.columns),
                                        dx);
      finish_row<P, G>(a, r, dx);
    }
  }
};
