// SPDX-License-Identifier: BSL-1.0
//
// Softmax along a row as a layer of its own, and its gradient. (That of the scores is in the
// attention kernels, that of the logits in the loss.)

namespace pp::host::PIPE_ISA {

/// y = e^x / (the sum of e^x over the row); computed from x less its largest element. NaN makes the
/// row NaN.
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

/// dx = y * (dy - the sum of dy * y over the row)
template <class T, bool Whole>
PIPE_ONE_COPY void softmax_gradient_row(int n, T const* dy, T const* y, T* dx) {
  T const mean = row_sum<T, Whole>(n, product_term<T>{dy, y});
  int i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) save(dx + i, load(y + i) * (load(dy + i) - mean));
  if constexpr (!Whole)
    for (; i < n; ++i) dx[i] = y[i] * (dy[i] - mean);
}

}  // namespace pp::host::PIPE_ISA
