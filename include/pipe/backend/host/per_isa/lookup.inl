// SPDX-License-Identifier: BSL-1.0
//
// The lookup of rows of a table by ids, and the gradient of the table.

/// y[r] = table[ids[r]]; zeros for an id of -1, which is padding.
///
/// shape: ids (rows), table (V, C) -> y (rows, C)
/// needs: ids in [-1, V); the trainer checks the ids of a batch before the step
/// cost:  a copy: reads and writes rows * C elements
template <>
struct kernel_of<op_kind::lookup> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    T* const nothing = static_cast<T*>(a.workspace);  // the row of an id of -1
    std::memset(nothing, 0, sizeof(T) * std::size_t(g.columns));
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      extent const id = a.ids(g.in[0])[r];
      finish_row<P, G>(a, r, id < 0 ? nothing : a.at(g.in[1]) + id * g.columns);
    }
  }
};

/// dtable[id] (+)= sum of dy[r] over the rows r with ids[r] = id.
///
/// shape: dy (rows, C), ids (rows) -> dtable (V, C)
/// work:  a part owns columns of the whole table, since two rows may have the same id
/// law:   rows ascending, for any number of parts
/// cost:  clears V * C elements for the first micro-batch, then adds rows * C
template <>
struct kernel_of<op_kind::lookup_gradient> : row_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr int vocabulary = g.attributes.lookup().vocabulary;
    T* const table = a.at(g.out[0]);
    part_range const own = k::own_columns(a, g.columns);
    if (!a.accumulate)
      for (extent id = 0; id < vocabulary; ++id)
        std::memset(table + id * g.columns + own.begin, 0, sizeof(T) * std::size_t(own.size()));
    for (extent r = 0; r < k::rows; ++r) {
      extent const id = a.ids(g.in[1])[r];
      if (id < 0) continue;
      T const* const dy = a.at(g.in[0]) + r * g.columns;
      T* const to = table + id * g.columns;
      PIPE_INDEPENDENT
      for (extent c = own.begin; c < own.end; ++c) to[c] += dy[c];
    }
  }
};
