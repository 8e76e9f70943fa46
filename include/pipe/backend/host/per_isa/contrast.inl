// SPDX-License-Identifier: BSL-1.0
//
// Contrast: each row (a, b) of a micro-batch with all others. A matrix of all scores is not stored:
// scores are computed where they are needed.

/// Rows (a, b) of a contrast: n rows that count, of two halves of `width` numbers.
template <class T>
struct contrasted {
  T const* x;
  int n, width;
  T factor;  // of a dot product in a score
  bool is_symmetric;
  T *of_row, *of_column;  // the logs of sums of e^score, of each row and column
  T const* a(int r) const { return x + extent(r) * 2 * width; }
  T const* b(int r) const { return a(r) + width; }
};

/// The dot products of `row` with each a, or each b, times the factor.
///
/// shape: row (width) -> s (n)
template <class T, bool WithA>
PIPE_ONE_COPY void contrast_scores(contrasted<T> const& of, T const* row, T* s) {
  for (int j = 0; j < of.n; ++j)
    s[j] = row_sum<T, false>(of.width, product_term<T>{row, WithA ? of.a(j) : of.b(j)}) * of.factor;
}
/// w[j] (+)= e^(s[j] - log[j]), or of one log for all j.
template <class T>
PIPE_ONE_COPY void contrast_shares(int n, T const* s, T const* log, bool is_one, bool adds, T* w) {
  T const one = *log;
  PIPE_INDEPENDENT
  for (int j = 0; j < n; ++j) {
    T const share = math::exp<products>(s[j] - (is_one ? one : log[j]));
    w[j] = adds ? w[j] + share : share;
  }
}

/// The logs of sums of e^score: of each row over all columns and, if symmetric, of each column over
/// all rows.
///
/// shape: -> of.of_row (n), of.of_column (n); room (3 n)
/// law:   a row's exponentials are summed as row_sums does, a column's in the order of rows, less
///        the largest so far: no exponential overflows
template <class T>
PIPE_ONE_COPY void contrast_logs(contrasted<T> const& of, T* room) {
  T *const s = room, *const e = room + of.n, *const top = room + 2 * of.n,
           *const of_column = of.of_column;
  for (int r = 0; r < of.n; ++r) {
    contrast_scores<T, false>(of, of.a(r), s);
    T most = s[0];
    for (int j = 1; j < of.n; ++j) most = s[j] > most ? s[j] : most;
    contrast_shares(of.n, s, &most, true, false, e);
    of.of_row[r] = T(libm::log(double(row_sum<T, false>(of.n, plain_term<T>{e}))) + double(most));
    if (!of.is_symmetric) continue;
    if (r == 0) {
      for (int j = 0; j < of.n; ++j) top[j] = s[j], of_column[j] = T(1);
      continue;
    }
    PIPE_INDEPENDENT
    for (int j = 0; j < of.n; ++j) {
      T const now = s[j] > top[j] ? s[j] : top[j];
      of_column[j] =
          of_column[j] * math::exp<products>(top[j] - now) + math::exp<products>(s[j] - now);
      top[j] = now;
    }
  }
  if (!of.is_symmetric) return;
  for (int j = 0; j < of.n; ++j) of_column[j] = T(libm::log(double(of_column[j])) + double(top[j]));
}

/// The sum of w[j] times each a, or each b, times a scale.
///
/// shape: w (n) -> y (width)
/// law:   an element is one chain of fused multiply-adds over ascending j
/// cost:  four rows pass by for each read and write of y
template <class T, bool OfA>
PIPE_ONE_COPY void contrast_sum(contrasted<T> const& of, T const* w, T scale, T* y) {
  auto const row = [&](int j) { return OfA ? of.a(j) : of.b(j); };
  std::memset(y, 0, sizeof(T) * std::size_t(of.width));
  int j = 0;
  for (; j + 4 <= of.n; j += 4) {
    T const *const z0 = row(j), *const z1 = row(j + 1), *const z2 = row(j + 2),
                   *const z3 = row(j + 3);
    PIPE_INDEPENDENT
    for (int c = 0; c < of.width; ++c) {
      T const two = multiply_add(w[j + 1], z1[c], multiply_add(w[j], z0[c], y[c]));
      y[c] = multiply_add(w[j + 3], z3[c], multiply_add(w[j + 2], z2[c], two));
    }
  }
  for (; j < of.n; ++j) {
    T const* const z = row(j);
    PIPE_INDEPENDENT
    for (int c = 0; c < of.width; ++c) y[c] = multiply_add(w[j], z[c], y[c]);
  }
  PIPE_INDEPENDENT
  for (int c = 0; c < of.width; ++c) y[c] *= scale;
}

/// The loss of row r, and its gradient by that row's a and b, which the losses of all rows
/// contribute to.
///
/// shape: -> gradient (2 width); room (2 n)
/// needs: the logs of all rows
template <class T>
PIPE_ONE_COPY double contrast_row(contrasted<T> const& of, int r, T scale, bool wants_gradient,
                                  T* room, T* gradient) {
  T *const s = room, *const w = room + of.n;
  contrast_scores<T, false>(of, of.a(r), s);
  double loss = double(of.of_row[r]) - double(s[r]);
  if (of.is_symmetric) loss = (loss + (double(of.of_column[r]) - double(s[r]))) / 2;
  if (!wants_gradient) return loss;
  T const own = of.is_symmetric ? T(2) : T(1), each = scale * of.factor / own;
  contrast_shares(of.n, s, of.of_row + r, true, false, w);
  if (of.is_symmetric) contrast_shares(of.n, s, of.of_column, false, true, w);
  w[r] -= own;
  contrast_sum<T, false>(of, w, each, gradient);
  contrast_scores<T, true>(of, of.b(r), s);
  contrast_shares(of.n, s, of.of_row, false, false, w);
  if (of.is_symmetric) contrast_shares(of.n, s, of.of_column + r, true, true, w);
  w[r] -= own;
  contrast_sum<T, true>(of, w, each, gradient + of.width);
  return loss;
}

/// The contrast of the rows of a micro-batch: see InfoNCE.
///
/// shape:     x (rows, 2 C) -> a.loss (rows), dx (rows, 2 C)
/// law:       samples that only fill up a micro-batch are read by no row
/// work:      parts own rows; each part computes the logs of all rows, so that no part waits for
///            another
/// workspace: five numbers for each row
/// cost:      of n rows 2 n^2 C FLOPs for the logs, and 8 n^2 C divided by the parts for gradients
template <>
struct kernel_of<op_kind::contrast> : contrast_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = loss_rows<P, G>;
    using T = typename k::T;
    using layer = typename detail::leaf_at<k::g.leaf, typename P::leaves>::formula;
    constexpr int rows = int(k::planned_rows);
    extent const valid = extent(a.valid_samples) * k::g.rows;
    T *const logs = static_cast<T*>(a.workspace), *const room = logs + 2 * rows;
    T const* const x = as_numbers(a.template values<typename k::V>(k::g.in[0]),
                                  k::planned_rows * k::g.columns, k::room(a) + 2 * k::g.columns);
    contrasted<T> const of{x,
                           int(valid < rows ? valid : rows),
                           k::g.columns / 2,
                           layer::template factor<T>(),
                           layer::is_symmetric,
                           logs,
                           logs + rows};
    bool knows_logs = false;
    k::each_loss(a, [&](extent r, T scale, T* gradient) {
      if (!knows_logs) contrast_logs(of, room);
      knows_logs = true;
      return contrast_row(of, int(r), scale, a.wants_gradient, room, gradient);
    });
  }
};
