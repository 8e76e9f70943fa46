// SPDX-License-Identifier: BSL-1.0
//
// Losses that are sums of a formula over elements: the terms are vector code, and are added in
// double precision.

/// The sum of x[0, n), as eight sums, each of every eighth element, which do not depend on each
/// other.
/// law: the order of additions depends on n only
template <class T>
double sum_in_double(int n, T const* x) {
  constexpr int Parts = 8;
  double part[Parts] = {};
  int i = 0;
  for (; i + Parts <= n; i += Parts)
    for (int k = 0; k < Parts; ++k) part[k] += double(x[i + k]);
  for (int k = 0; i + k < n; ++k) part[k] += double(x[i + k]);
  double total = 0;
  for (int k = 0; k < Parts; ++k) total += part[k];
  return total;
}

template <class Formula, int N, class T, class... More>
void loss_terms(T* terms, T const* x, T const* target, More const*... more) {
  PIPE_INDEPENDENT
  for (int i = 0; i < N; ++i) terms[i] = loss_value_of<Formula>(x[i], target[i], more[i]...);
}
template <class Formula, int N, class T, class... More>
void loss_slopes(T scale, T* slopes, T const* x, T const* target, More const*... more) {
  PIPE_INDEPENDENT
  for (int i = 0; i < N; ++i)
    slopes[i] = loss_slope_of<Formula>(x[i], target[i], more[i]...) * scale;
}

/// One row of a loss that is a sum over elements: returns the sum of Formula::value(x, target,
/// more...).
///
/// shape: x, target, more (N each) -> gradient (N) = scale * Formula::slope; gradient may be x
/// needs: terms has room for N elements
template <class Formula, int N, class T, class... More>
[[gnu::flatten]] PIPE_ONE_COPY double element_loss_row(T const* x, T const* target, T scale,
                                                       bool wants_gradient, T* terms, T* gradient,
                                                       More const*... more) {
  constexpr int block = 4 * lanes<T>, whole = N / block * block, rest = N - whole;
  for (int i = 0; i < whole; i += block)
    loss_terms<Formula, block>(terms + i, x + i, target + i, more + i...);
  if constexpr (rest > 0)
    loss_terms<Formula, rest>(terms + whole, x + whole, target + whole, more + whole...);
  if (wants_gradient) {
    for (int i = 0; i < whole; i += block)
      loss_slopes<Formula, block>(scale, gradient + i, x + i, target + i, more + i...);
    if constexpr (rest > 0)
      loss_slopes<Formula, rest>(scale, gradient + whole, x + whole, target + whole,
                                 more + whole...);
  }
  return sum_in_double(N, terms);
}

/// A loss that is a sum of a formula over elements, and its gradient.
///
/// shape: x, target and further targets (rows, C), weights (rows) -> a.loss (rows), dx (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::element_loss> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = loss_rows<P, G>;
    using T = typename k::T;
    using formula = typename detail::leaf_at<k::g.leaf, typename P::leaves>::formula;
    k::each_loss(a, [&a](extent r, T scale, T* gradient) {
      return k::with_targets(a, r * k::g.columns, [&](auto const*... more) {
        return element_loss_row<formula, k::g.columns, T>(
            k::row_of_input(a, r), a.at(k::g.in[1]) + r * k::g.columns, scale, a.wants_gradient,
            static_cast<T*>(a.workspace), gradient, more...);
      });
    });
  }
};
