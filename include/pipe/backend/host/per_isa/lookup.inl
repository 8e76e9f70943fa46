// SPDX-License-Identifier: BSL-1.0
//
// The lookup of rows of a table by ids, sums and means of such rows, and the gradient of the table.

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
    using V = typename k::V;
    constexpr detail::group g = k::g;
    V* const nothing = static_cast<V*>(a.workspace);  // the row of an id of -1
    std::memset(nothing, 0, sizeof(V) * std::size_t(g.columns));
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      extent const id = a.ids(g.in[0])[r];
      finish_row<P, G>(a, r,
                       id < 0 ? nothing : a.template values<V const>(g.in[1]) + id * g.columns);
    }
  }
};

/// The number of the ids [0, n) that are neither -1 nor `padding`.
inline int count_ids(int const* ids, int n, int padding) {
  int found = 0;
  for (int i = 0; i < n; ++i) found += ids[i] >= 0 && ids[i] != padding;
  return found;
}

/// y = the sum or the mean of table[id] over the ids that are neither -1 nor of.padding.
///
/// shape: ids (of.ids), table (V, columns) -> y (columns)
template <class T, class V = T>
PIPE_ONE_COPY void add_bag(int const* ids, detail::lookup_attributes const& of, V const* table,
                           int columns, T* y) {
  std::memset(y, 0, sizeof(T) * std::size_t(columns));
  for (int i = 0; i < of.ids; ++i) {
    if (ids[i] < 0 || ids[i] == of.padding) continue;
    V const* const row = table + extent(ids[i]) * columns;
    PIPE_INDEPENDENT
    for (int c = 0; c < columns; ++c) y[c] += T(row[c]);
  }
  int const count = of.is_mean ? count_ids(ids, of.ids, of.padding) : 1;
  if (count < 2) return;
  PIPE_INDEPENDENT
  for (int c = 0; c < columns; ++c) y[c] /= T(count);
}

/// y[r] = the sum or the mean of table[id] over the ids of row r that are neither -1 nor the
/// padding index; zeros if there is no such id. No other memory holds the rows of the table.
///
/// shape: ids (rows, I), table (V, C) -> y (rows, C)
/// needs: ids in [-1, V)
/// law:   a sum adds the rows in the order of the ids, from zero; a mean then divides the sum
/// cost:  reads rows * I * C elements, writes rows * C
template <>
struct kernel_of<op_kind::bag> : lookup_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr detail::lookup_attributes of = g.attributes.lookup();
    part_range const own = k::own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = k::result_row(a, r, static_cast<T*>(a.workspace));
      add_bag<T, typename k::V>(a.ids(g.in[0]) + r * of.ids, of,
                                a.template values<typename k::V>(g.in[1]), g.columns, y);
      finish_row<P, G>(a, r, y);
    }
  }
};

/// dtable[id] (+)= sum of dy[r / I] over the ids number r that are `id`; I is 1 for a lookup. For a
/// mean each dy is divided by the number of ids that its row is the mean of.
///
/// shape: dy (rows, C), ids (rows, I) -> dtable (V, C)
/// work:  a part owns columns of the whole table, since two rows may have the same id
/// law:   ids ascending by their place, for any number of parts
/// cost:  clears V * C elements for the first micro-batch, then adds rows * I * C
template <>
struct kernel_of<op_kind::lookup_gradient> : lookup_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    constexpr detail::lookup_attributes of = g.attributes.lookup();
    constexpr int vocabulary = of.vocabulary;
    T* const table = a.at(g.out[0]);
    part_range const own = k::own_columns(a, g.columns);
    if (!a.accumulate)
      for (extent id = 0; id < vocabulary; ++id)
        std::memset(table + id * g.columns + own.begin, 0, sizeof(T) * std::size_t(own.size()));
    for (extent r = 0; r < k::rows(a); ++r) {
      int const* const ids = a.ids(g.in[1]) + r * of.ids;
      auto const* const dy = a.template values<typename k::V>(g.in[0]) + r * g.columns;
      [[maybe_unused]] T const count = T(of.is_mean ? count_ids(ids, of.ids, of.padding) : 1);
      for (int i = 0; i < of.ids; ++i) {
        extent const id = ids[i];
        if (id < 0 || id == of.padding) continue;
        T* const to = table + id * g.columns;
        PIPE_INDEPENDENT
        for (extent c = own.begin; c < own.end; ++c)
          to[c] += of.is_mean ? T(dy[c]) / count : T(dy[c]);
      }
    }
  }
};
/// The same for bags.
///
/// shape: dy (rows, C), ids (rows, I) -> dtable (V, C)
template <>
struct kernel_of<op_kind::bag_gradient> : kernel_of<op_kind::lookup_gradient> {};
