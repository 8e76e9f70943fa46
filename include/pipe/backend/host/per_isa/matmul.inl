// SPDX-License-Identifier: BSL-1.0
//
// Matrix products as kernel groups: rows of the left factor may be made by a prologue just before
// they are read, and finished tiles go through an epilogue.

/// Rows `own` of the result of a product; `left` and what the prologue makes begin with the first
/// of them.
template <class P, int G, class T, class Prologue>
void multiply(arguments<T> const& a, share own, strided<T const> left, T* right, void* workspace,
              Prologue prologue) {
  constexpr group g = P::group_at(G);
  constexpr int least = least_tile_rows<P>();
  constexpr extent inner = g.attributes.contraction().inner;
  if constexpr (g.epilogue.size() > 0)
    contract<T, least>(own.size(), g.columns, inner, left, right, g.columns,
                       epilogue_sink<P, G>{a, own.begin}, workspace, prologue);
  else
    contract<T, least>(own.size(), g.columns, inner, left, right, g.columns,
                       store<T>{a.at(g.out[0]) + own.begin * g.columns, g.columns}, workspace,
                       prologue);
}

template <>
struct kernel_of<op_kind::matmul> : contraction_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    constexpr extent inner = g.attributes.contraction().inner;
    share const own = k::own_rows(a, rows_step);
    if (own.size() == 0) return;
    strided<T const> left{a.at(g.in[0]) + own.begin * inner, inner, 1};
    if constexpr (g.prologue.size() > 0) {
      constexpr int stored = g.prologue[g.prologue.size() - 1].store;
      char* free = static_cast<char*>(a.workspace);
      T* const rows_of_a = stored >= 0 ? a.at(stored < 0 ? 0 : stored) + own.begin * inner
                                       : reinterpret_cast<T*>(free);
      if (stored < 0) free += align_up(own.size() * inner * long(sizeof(T)));
      left.data = rows_of_a;
      multiply<P, G>(a, own, left, a.at(g.in[1]), free,
                     chain_prologue<P, G>{a, own.begin, rows_of_a});
    } else {
      multiply<P, G>(a, own, left, a.at(g.in[1]), a.workspace, no_prologue{});
    }
  }
};

template <>
struct kernel_of<op_kind::matmul_input_gradient> : contraction_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    constexpr extent inner = g.attributes.contraction().inner;
    share const own = k::own_rows(a, rows_step);
    if (own.size() == 0) return;
    multiply<P, G>(a, own, strided<T const>{a.at(g.in[0]) + own.begin * inner, inner, 1},
                   a.at(g.in[1]), a.workspace, no_prologue{});
  }
};

/// A prologue is the gradient of a bias, from the same rows.
template <>
struct kernel_of<op_kind::matmul_weight_gradient> : weight_gradient_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    if constexpr (g.prologue.size() > 0)
      sum_columns<P, G>(a, a.at(g.in[1]), k::rows, g.columns, a.at(g.prologue[0].store));
    weight_gradient<T>(tiles<T, least_tile_rows<P>()>, a, g, k::rows);
  }
};
