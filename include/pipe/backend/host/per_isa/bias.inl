// SPDX-License-Identifier: BSL-1.0
//
// The gradients that are sums over rows: of biases, of slopes, and of a norm's scale and shift.

/// The gradient of a bias: db[c] (+)= sum over r of dy[r, c].
///
/// shape: dy (rows, C) -> db (C)
/// work:  a part sums whole columns, in cache lines of db, so no two threads write to one line
/// law:   rows ascending from zero; the finished sum is added once to db; the number of parts
///        changes no bit
/// cost:  one pass over dy, whose bytes bound it
template <>
struct kernel_of<op_kind::bias_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    using V = typename k::V;
    sum_columns<T, V>(&column_sums<T, k::whole, V>, a, a.template values<V>(k::g.in[0]), k::rows(a),
                      k::g.columns, a.at(k::g.out[0]));
  }
};

/// The sums over segments of the rows at the same position: out[t, c] (+)= sum over s of
/// dy[first[s]
/// + t, c], for the positions t in `own` and the segments s that have them.
///
/// shape: dy (rows, columns), sums (columns) -> out (T, columns)
/// law:   segments ascending from zero; the finished sum is added once to out
template <class T, class V = T>
PIPE_ONE_COPY void sum_positions(detail::segment_list const& of, V const* dy, extent columns,
                                 part_range own, T* sums, T* out, bool accumulate) {
  for (extent t = own.begin; t < own.end; ++t) {
    std::memset(sums, 0, sizeof(T) * std::size_t(columns));
    for (int s = 0; s < of.count; ++s) {
      if (t >= of.length(s)) continue;
      V const* const row = dy + (of.first[s] + t) * columns;
      PIPE_INDEPENDENT
      for (extent c = 0; c < columns; ++c) sums[c] += T(row[c]);
    }
    T* const to = out + t * columns;
    PIPE_INDEPENDENT
    for (extent c = 0; c < columns; ++c) to[c] = accumulate ? to[c] + sums[c] : sums[c];
  }
}

/// The gradient of a table with one row per position: dtable[t, c] (+)= sum over b of dy[b, t, c].
///
/// shape: dy (B, T, C) -> dtable (T, C)
/// law:   as for a bias gradient, with dy as a matrix (B, T * C): row t of the table is columns [t
///        * C, (t + 1) * C). With Lengths as sum_positions, whose parts own positions
template <>
struct kernel_of<op_kind::row_bias_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    using V = typename k::V;
    if constexpr (takes_lengths<P>)
      if (a.segments != nullptr)
        return sum_positions<T, V>(*a.segments, a.template values<V>(k::g.in[0]), k::g.columns,
                                   own_part(k::g.rows, 1, a.part, a.parts),
                                   static_cast<T*>(a.workspace), a.at(k::g.out[0]), a.accumulate);
    sum_columns<T, V>(&column_sums<T, k::whole, V>, a, a.template values<V>(k::g.in[0]), P::samples,
                      extent(k::g.rows) * k::g.columns, a.at(k::g.out[0]));
  }
};

/// The gradient of the slopes of a prelu: dslope[c] (+)= sum over r of dy[r, c] x[r, c] where x is
/// not above 0. A slope that all columns share has the sum of the sums of columns.
///
/// shape: dy, x (rows, C) -> dslope (C) or (1)
/// work:  a part sums whole columns, in cache lines; the first part makes the whole sum of a shared
///        slope, since a sum of parts would depend on their number
/// law:   rows ascending from zero, then columns ascending; the finished sum is added once
template <>
struct kernel_of<op_kind::prelu_parameter_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using V = typename k::V;
    slope_term<T, V> const term{a.template values<V>(g.in[0]), a.template values<V>(g.in[1]),
                                g.columns};
    T* const out = a.at(g.out[0]);
    if constexpr (!g.attributes.slope().is_shared) {
      slope_sums<T, k::whole, V>(term, k::rows(a), k::own_columns(a, g.columns), out, a.accumulate);
    } else if (a.part == 0) {
      T* const sums = static_cast<T*>(a.workspace);
      slope_sums<T, k::whole, V>(term, k::rows(a), {0, g.columns}, sums, false);
      T sum = 0;
      for (int c = 0; c < g.columns; ++c) sum += sums[c];
      *out = a.accumulate ? *out + sum : sum;
    }
  }
};

/// The gradients of a norm's scale and shift, in one pass over dy and x.
///
/// shape: dy (rows, C), x (rows, C), statistics (rows, 2) -> dgamma (C), dbeta (C); either may be
///        absent
/// law:   dgamma[c] (+)= sum over r of dy * xhat and dbeta[c] (+)= sum over r of dy, where xhat =
///        (x - mean_r) * rstd_r; rows ascending
/// work:  a part sums whole columns, in cache lines
template <>
struct kernel_of<op_kind::norm_parameter_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using V = typename k::V;
    norm_parameter_gradient<T, k::whole, V>(
        {a.template values<V>(g.in[0]), a.template values<V>(g.in[1]), a.at(g.in[2]), g.columns},
        k::rows(a), k::own_columns(a, g.columns), a.maybe(g.out[0]), a.maybe(g.out[1]),
        a.accumulate);
  }
};
