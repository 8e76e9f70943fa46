// SPDX-License-Identifier: BSL-1.0
//
// Group norm: a sample's columns are in groups, and each group is normalised over all rows of the
// sample. Sums are first computed by column, so that memory is read in order, and then added by
// group. The numbers of each column are in the workspace, so that rows are normalised by the
// functions of a batch norm.

/// Replaces each column's number by the sum over the columns of its group times `factor`.
///
/// law: columns ascending
template <class T>
void average_groups(int n, int groups, T factor, T* x) {
  int const width = n / groups;
  for (int from = 0; from < n; from += width) {
    T sum = 0;
    for (int c = from; c < from + width; ++c) sum += x[c];
    for (int c = from; c < from + width; ++c) x[c] = sum * factor;
  }
}
/// Gives each column the mean and 1 / deviation of its group.
///
/// shape: statistics (groups, 2) -> columns (2, n)
template <class T>
void spread_groups(int n, int groups, T const* statistics, T* columns) {
  int const width = n / groups;
  for (int c = 0; c < n; ++c) {
    columns[c] = statistics[c / width * 2];
    columns[n + c] = statistics[c / width * 2 + 1];
  }
}

/// Mean and 1 / sqrt(variance + epsilon) of each group of a sample.
///
/// shape: x (rows, n) -> statistics (groups, 2), and by column (2, n); room (n)
/// law:   as batch_statistics: two passes; the second also corrects the mean
template <class T, bool Whole, class V>
PIPE_ONE_COPY void group_statistics(extent rows, int n, int groups, T epsilon, V const* x,
                                    T* statistics, T* columns, T* room) {
  T *const mean = columns, *const off = columns + n, *const square = room;
  T const share_of_number = T(1) / T(rows * (n / groups));
  block_sums<1, Whole, T>(rows, n, element_term<T, V>{x, n}, {mean});
  average_groups(n, groups, share_of_number, mean);
  block_sums<2, Whole, T>(rows, n, difference_term<T, V>{x, mean, n}, {off, square});
  average_groups(n, groups, share_of_number, off);
  average_groups(n, groups, share_of_number, square);
  for (int i = 0; i < groups; ++i) {
    int const c = i * (n / groups);
    T const least = multiply_add(-off[c], off[c], square[c]);
    statistics[2 * i] = mean[c] + off[c];
    statistics[2 * i + 1] = reciprocal_sqrt((least < T(0) ? T(0) : least) + epsilon);
  }
  spread_groups(n, groups, statistics, columns);
}

/// Normalises every group of every sample, and scales and shifts it where gamma and beta are
/// present.
///
/// shape: x (B, R, C), gamma (C), beta (C) -> y (B, R, C), statistics (B, groups, 2): mean, rstd
/// work:  parts own samples
template <>
struct kernel_of<op_kind::group_norm> : column_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr detail::group_attributes of = g.attributes.group();
    constexpr int n = g.columns;
    using V = typename k::V;
    T *const buffer = static_cast<T*>(a.workspace), *const columns = buffer + n;
    V const* const x = a.template values<V>(g.in[0]);
    part_range const own = own_part(P::samples, 1, a.part, a.parts);
    for (extent s = own.begin; s < own.end; ++s) {
      group_statistics<T, k::whole>(g.rows, n, of.groups, T(of.epsilon), x + s * g.rows * n,
                                    a.at(g.out[1]) + s * 2 * of.groups, columns, columns + 2 * n);
      for (extent r = s * g.rows; r < (s + 1) * g.rows; ++r) {
        T* const y = k::result_row(a, r, buffer);
        batch_norm_row<T, k::whole>(n, x + r * n, columns, a.template maybe_values<V>(g.in[1]),
                                    a.template maybe_values<V>(g.in[2]), y);
        finish_row<P, G>(a, r, y);
      }
    }
  }
};

/// The gradient by the input of a group norm.
///
/// shape: dy, x (B, R, C), gamma (C), statistics (B, groups, 2) -> dx (B, R, C)
/// work:  parts own samples
template <>
struct kernel_of<op_kind::group_norm_gradient> : column_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr int n = g.columns, groups = g.attributes.group().groups;
    T *const buffer = static_cast<T*>(a.workspace), *const columns = buffer + n,
             *const means = columns + 2 * n;
    using V = typename k::V;
    V const* const gamma = a.template maybe_values<V>(g.in[2]);
    part_range const own = own_part(P::samples, 1, a.part, a.parts);
    for (extent s = own.begin; s < own.end; ++s) {
      V const *const dy = a.template values<V>(g.in[0]) + s * g.rows * n, *const x =
                                                                              a.template values<V>(
                                                                                  g.in[1]) +
                                                                              s * g.rows * n;
      spread_groups(n, groups, a.at(g.in[3]) + s * 2 * groups, columns);
      block_sums<2, k::whole, T>(g.rows, n, batch_term<T, V>{dy, x, columns, columns + n, n},
                                 {means, means + n});
      for (int i = 0; gamma != nullptr && i < 2 * n; ++i) means[i] *= T(gamma[i % n]);
      average_groups(2 * n, 2 * groups, T(1) / T(g.rows * (n / groups)), means);
      for (extent r = 0; r < g.rows; ++r) {
        T* const dx = k::result_row(a, s * g.rows + r, buffer);
        batch_norm_gradient_row<T, k::whole>(n, dy + r * n, x + r * n, columns, gamma, means, dx);
        finish_row<P, G>(a, s * g.rows + r, dx);
      }
    }
  }
};

/// The gradients of a group norm's gamma and beta.
///
/// shape: dy, x (B, R, C), statistics (B, groups, 2) -> dgamma (C), dbeta (C); either may be absent
/// law:   the sums of each sample, rows ascending, are added one after the other
/// work:  one part
template <>
struct kernel_of<op_kind::group_parameter_gradient> : column_facts {
  static constexpr int parts(detail::group const&, int, int) { return 1; }
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using V = typename k::V;
    constexpr int n = g.columns, groups = g.attributes.group().groups;
    T* const columns = static_cast<T*>(a.workspace);
    for (extent s = 0; s < P::samples; ++s) {
      spread_groups(n, groups, a.at(g.in[2]) + s * 2 * groups, columns);
      batch_term<T, V> const term{a.template values<V>(g.in[0]) + s * g.rows * n,
                                  a.template values<V>(g.in[1]) + s * g.rows * n, columns,
                                  columns + n, n};
      column_sums<2, k::whole, T>(g.rows, n, term, {a.maybe(g.out[0]), a.maybe(g.out[1])},
                                  a.accumulate || s > 0);
    }
  }
};
