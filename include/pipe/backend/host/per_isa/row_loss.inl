// SPDX-License-Identifier: BSL-1.0
//
// Losses that are a formula of each row.

/// One row of such a loss: returns Formula::value(x, label, more...).
///
/// shape: x (N), label (Labels) -> gradient (N) = scale * Formula::slopes; gradient may be x
/// needs: copy has room for N elements
template <class Formula, int N, int Labels, class T, class... More>
[[gnu::flatten]] PIPE_ONE_COPY double row_loss_row(T const* x, T const* label, T scale,
                                                   bool wants_gradient, T* copy, T* gradient,
                                                   More... more) {
  std::memcpy(copy, x, sizeof(T) * N);
  custom::row<T const> const row{copy, N}, of{label, Labels};
  double const loss = double(Formula::value(row, of, more...));
  if (wants_gradient) {
    Formula::slopes(row, of, more..., custom::row<T>{gradient, N});
    for (int i = 0; i < N; ++i) gradient[i] *= scale;
  }
  return loss;
}

/// A loss that is a formula of each row, and its gradient.
///
/// shape: x (rows, C), label (rows, D), further targets and weights (rows) -> a.loss (rows), dx
///        (rows, C)
/// work:  parts own rows
template <>
struct kernel_of<op_kind::row_loss> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = loss_rows<P, G>;
    using T = typename k::T;
    using layer = detail::leaf_at<k::g.leaf, typename P::leaves>;
    constexpr int labels = detail::labels_of_row<layer>(k::g.columns);
    k::each_loss(a, [&a](extent r, T scale, T* gradient) {
      T const* label = nullptr;
      if constexpr (labels > 0) label = a.at(k::g.in[1]) + r * labels;
      return k::with_targets(a, r, [&](auto const*... more) {
        return row_loss_row<typename layer::formula, k::g.columns, labels, T>(
            k::row_of_input(a, r), label, scale, a.wants_gradient, static_cast<T*>(a.workspace),
            gradient, *more...);
      });
    });
  }
};
