// SPDX-License-Identifier: BSL-1.0
//
// Pooling from the rows of a sample to one row, and its gradient. If there are ids, rows with an id
// of -1 are padding.

/// The rows of a sample that a pool reads. count: rows that are not padding; chosen: the row that
/// is taken, -1 for a mean or if all rows are padding.
struct pooled_rows {
  int count = 0, chosen = -1;
};
PIPE_ONE_COPY inline pooled_rows find_pooled(detail::pool_kind which, int n, int const* ids) {
  pooled_rows found;
  for (int t = 0; t < n; ++t) {
    if (ids != nullptr && ids[t] < 0) continue;
    if (which == detail::pool_kind::last || (which == detail::pool_kind::first && found.count == 0))
      found.chosen = t;
    ++found.count;
  }
  return found;
}

/// y = the first, the last or the mean of the rows t whose id is not negative; zeros if there is no
/// such row.
///
/// shape: x (n, columns), ids (n) or null -> result (columns); room (columns) where V is not T
/// law:   a mean adds rows in ascending order, then divides
template <class T, class V = T>
PIPE_ONE_COPY void pool_sample(detail::pool_kind which, int n, int columns, int const* ids,
                               V const* x, V* result, T* room = nullptr) {
  pooled_rows const rows = find_pooled(which, n, ids);
  if (rows.chosen >= 0) {
    std::memcpy(result, x + extent(rows.chosen) * columns, sizeof(V) * std::size_t(columns));
    return;
  }
  std::memset(result, 0, sizeof(V) * std::size_t(columns));
  if (which != detail::pool_kind::mean || rows.count == 0) return;
  T* y = room;
  if constexpr (in_place<T, V>)
    y = result;
  else
    std::memset(y, 0, sizeof(T) * std::size_t(columns));
  for (int t = 0; t < n; ++t) {
    if (ids != nullptr && ids[t] < 0) continue;
    V const* const row = x + extent(t) * columns;
    PIPE_INDEPENDENT
    for (int c = 0; c < columns; ++c) y[c] += T(row[c]);
  }
  PIPE_INDEPENDENT
  for (int c = 0; c < columns; ++c) y[c] /= T(rows.count);
  if constexpr (!in_place<T, V>) convert_row(y, columns, result);
}
/// dx[t] = dy for the row that was taken, dy / count for rows that were averaged, zeros for all
/// others.
///
/// shape: dy (columns), ids (n) or null -> dx (n, columns)
template <class T, class V = T>
PIPE_ONE_COPY void pool_gradient_sample(detail::pool_kind which, int n, int columns, int const* ids,
                                        V const* dy, V* dx) {
  pooled_rows const rows = find_pooled(which, n, ids);
  for (int t = 0; t < n; ++t) {
    V* const row = dx + extent(t) * columns;
    bool const takes_part =
        which == detail::pool_kind::mean ? ids == nullptr || ids[t] >= 0 : t == rows.chosen;
    if (!takes_part) {
      std::memset(row, 0, sizeof(V) * std::size_t(columns));
    } else if (which == detail::pool_kind::mean) {
      PIPE_INDEPENDENT
      for (int c = 0; c < columns; ++c) row[c] = V(T(dy[c]) / T(rows.count));
    } else {
      std::memcpy(row, dy, sizeof(V) * std::size_t(columns));
    }
  }
}

/// A sample that is pooled: its ids, or null; the number of its rows, and the first of them.
struct pooled_sample {
  int const* ids;
  int rows;
  extent first_row;
};
/// Calls each(pooled_sample, sample) for the samples of this part. With Lengths, absent samples of
/// a micro-batch have no rows.
template <class P, int G, class T, class Each>
void each_pooled(arguments<T> const& a, Each const& each) {
  constexpr detail::group g = P::group_at(G);
  part_range const own = own_part(P::samples, 1, a.part, a.parts);
  for (extent s = own.begin; s < own.end; ++s) {
    pooled_sample of{nullptr, g.attributes.pool().rows, s * g.attributes.pool().rows};
    if constexpr (takes_lengths<P>)
      if (a.segments != nullptr) {
        of.rows = a.segments->length_of(s);
        of.first_row = a.segments->first_of(s);
      }
    if constexpr (g.in[1] >= 0) of.ids = a.ids(g.in[1]) + of.first_row;
    each(of, s);
  }
}

/// One row per sample: the first, the last or the mean of the rows that are not padding.
///
/// shape: x (B, T, C), ids (B, T) or absent -> y (B, C)
/// work:  parts own samples
template <>
struct kernel_of<op_kind::pool> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    using V = typename k::V;
    each_pooled<P, G>(a, [&a](pooled_sample const& of, extent s) {
      pool_sample<T, V>(k::g.attributes.pool().which, of.rows, k::g.columns, of.ids,
                        a.template values<V>(k::g.in[0]) + of.first_row * k::g.columns,
                        a.template values<V>(k::g.out[0]) + s * k::g.columns,
                        static_cast<T*>(a.workspace));
    });
  }
};

/// The gradient of a pool: dy for the row that was taken, or dy / count for all rows that were
/// averaged; zeros for all others.
///
/// shape: dy (B, C), ids (B, T) or absent -> dx (B, T, C)
/// work:  parts own samples
template <>
struct kernel_of<op_kind::pool_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    using V = typename k::V;
    each_pooled<P, G>(a, [&a](pooled_sample const& of, extent s) {
      pool_gradient_sample<T, V>(k::g.attributes.pool().which, of.rows, k::g.columns, of.ids,
                                 a.template values<V>(k::g.in[0]) + s * k::g.columns,
                                 a.template values<V>(k::g.out[0]) + of.first_row * k::g.columns);
    });
  }
};
