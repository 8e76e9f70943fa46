// SPDX-License-Identifier: BSL-1.0
//
// A kernel group as one function: the anchor's kernel with its prologue and epilogue built in.
// `run<P, G>` is what a launch calls; P describes the groups of a pipeline, G is the number of a
// distinct one.

namespace pp::host::PIPE_ISA {

/// Rows in turn, each made by `make(row, buffer)` in a buffer or in place, then finished.
template <class P, int G>
struct group_kernel {
  using T = typename P::element;
  using args = arguments<T>;
  static constexpr group g = P::group_at(G);
  static constexpr extent rows = extent(g.rows) * P::samples;
  static constexpr bool whole = g.columns % lanes<T> == 0;
  static constexpr int least = least_tile_rows<P>();

  /// The rows, or the columns, that this part works on.
  static share own_rows(args const& a, extent step = 1) {
    return part_of(rows, step, a.part, a.parts);
  }
  static share own_columns(args const& a, extent columns) {
    return part_of(columns, columns_step<T>, a.part, a.parts);
  }
  static T* maybe(args const& a, int slot) { return slot < 0 ? nullptr : a.at(slot); }

  static void lookup(args const& a) {
    T* const nothing = static_cast<T*>(a.workspace);  // what an id of -1 stands for
    std::memset(nothing, 0, sizeof(T) * std::size_t(g.columns));
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      extent const id = a.ids(g.in[0])[r];
      finish_row<P, G>(a, r, id < 0 ? nothing : a.at(g.in[1]) + id * g.columns);
    }
  }

  static void matmul(args const& a) {
    constexpr extent inner = g.attributes.contraction().inner;
    share const own = own_rows(a, rows_step);
    if (own.size() == 0) return;
    strided<T const> left{a.at(g.in[0]) + own.begin * inner, inner, 1};
    if constexpr (g.prologue.size() > 0) {
      constexpr int stored = g.prologue[g.prologue.size() - 1].store;
      char* free = static_cast<char*>(a.workspace);
      T* const rows_of_a = stored >= 0 ? a.at(stored < 0 ? 0 : stored) + own.begin * inner
                                       : reinterpret_cast<T*>(free);
      if (stored < 0) free += align_up(own.size() * inner * long(sizeof(T)));
      left.data = rows_of_a;
      product(a, own, left, a.at(g.in[1]), free, chain_prologue<P, G>{a, own.begin, rows_of_a});
    } else {
      product(a, own, left, a.at(g.in[1]), a.workspace, no_prologue{});
    }
  }
  static void matmul_input_gradient(args const& a) {
    constexpr extent inner = g.attributes.contraction().inner;
    share const own = own_rows(a, rows_step);
    if (own.size() == 0) return;
    product(a, own, strided<T const>{a.at(g.in[0]) + own.begin * inner, inner, 1}, a.at(g.in[1]),
            a.workspace, no_prologue{});
  }
  /// Rows `own` of the result; `left` and what the prologue makes begin with the first of them.
  template <class Prologue>
  static void product(args const& a, share own, strided<T const> left, T const* right,
                      void* workspace, Prologue prologue) {
    constexpr extent inner = g.attributes.contraction().inner;
    if constexpr (g.epilogue.size() > 0)
      contract<T, least>(own.size(), g.columns, inner, left, right, g.columns,
                         epilogue_sink<P, G>{a, own.begin}, workspace, prologue);
    else
      contract<T, least>(own.size(), g.columns, inner, left, right, g.columns,
                         store<T>{a.at(g.out[0]) + own.begin * g.columns, g.columns}, workspace,
                         prologue);
  }
  static void matmul_weight_gradient(args const& a) {
    if constexpr (g.prologue.size() > 0)
      sum_columns(a, a.at(g.in[1]), rows, g.columns, a.at(g.prologue[0].store));
    weight_gradient<T>(tiles<T, least>, a, g, rows);
  }

  static void norm(args const& a) {
    constexpr norm_attributes of = g.attributes.norm();
    T* const buffer = static_cast<T*>(a.workspace);
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = result_row(a, r, buffer);
      norm_row<T, whole, streams<P, G>() && g.epilogue.size() == 0>(
          g.columns, of.has_mean, T(of.epsilon), main_row(a, r, buffer + g.columns), a.at(g.in[1]),
          maybe(a, g.in[2]), a.at(g.out[1]) + 2 * r, y);
      finish_row<P, G>(a, r, y);
    }
  }
  static void norm_gradient(args const& a) {
    T* const buffer = static_cast<T*>(a.workspace);
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const dx = result_row(a, r, buffer);
      norm_gradient_row<T, whole>(g.columns, g.attributes.norm().has_mean,
                                  a.at(g.in[0]) + r * g.columns, a.at(g.in[1]) + r * g.columns,
                                  a.at(g.in[2]), a.at(g.in[3]) + 2 * r, dx);
      finish_row<P, G>(a, r, dx);
    }
  }
  static void norm_parameter_gradient(args const& a) {
    PIPE_ISA::norm_parameter_gradient<T, whole>(
        rows, g.columns, own_columns(a, g.columns), a.at(g.in[0]), a.at(g.in[1]), a.at(g.in[2]),
        maybe(a, g.out[0]), maybe(a, g.out[1]), a.accumulate);
  }

  /// Row r of the anchor's main operand, from the prologue, if there is one, by way of `buffer`.
  static T const* main_row(args const& a, extent r, [[maybe_unused]] T* buffer) {
    T const* const x = a.at(g.in[0]) + r * g.columns;
    if constexpr (g.prologue.size() > 0) {
      chain<P, G, false>::template run_row<true>(a, r, x, buffer);
      return buffer;
    } else {
      return x;
    }
  }
  /// Where row r of the anchor's result is made: in place if nothing follows, else in `buffer`.
  static T* result_row(args const& a, extent r, T* buffer) {
    return g.epilogue.size() == 0 ? a.at(g.out[0] < 0 ? 0 : g.out[0]) + r * g.columns : buffer;
  }
  static void softmax(args const& a) {
    T* const buffer = static_cast<T*>(a.workspace);
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = result_row(a, r, buffer);
      softmax_forward_row<g.columns, T>(main_row(a, r, buffer + g.columns), y);
      finish_row<P, G>(a, r, y);
    }
  }
  static void softmax_gradient(args const& a) {
    T* const buffer = static_cast<T*>(a.workspace);
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const dx = result_row(a, r, buffer);
      softmax_gradient_row<T, whole>(g.columns, a.at(g.in[0]) + r * g.columns,
                                     a.at(g.in[1]) + r * g.columns, dx);
      finish_row<P, G>(a, r, dx);
    }
  }

  static void gate(args const& a) {
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = result_row(a, r, static_cast<T*>(a.workspace));
      gate_row<leaf_at<g.leaf, typename P::leaves>, g.columns, T>(a.at(g.in[0]) + r * 2 * g.columns,
                                                                  y);
      finish_row<P, G>(a, r, y);
    }
  }
  static void gate_gradient(args const& a) {
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const dx = result_row(a, r, static_cast<T*>(a.workspace));
      gate_gradient_row<leaf_at<g.leaf, typename P::leaves>, g.columns / 2, T>(
          a.at(g.in[0]) + r * (g.columns / 2), a.at(g.in[1]) + r * g.columns, dx);
      finish_row<P, G>(a, r, dx);
    }
  }

  /// each(ids of a sample, or null, sample) for the samples of this part.
  template <class Each>
  static void each_pooled(args const& a, Each const& each) {
    constexpr int positions = g.attributes.pool().rows;
    share const own = part_of(P::samples, 1, a.part, a.parts);
    for (extent s = own.begin; s < own.end; ++s)
      each(g.in[1] < 0 ? nullptr : a.ids(g.in[1] < 0 ? 0 : g.in[1]) + s * positions, s);
  }
  static void pool(args const& a) {
    each_pooled(a, [&a](int const* ids, extent s) {
      constexpr pool_attributes of = g.attributes.pool();
      pool_sample<T>(of.which, of.rows, g.columns, ids, a.at(g.in[0]) + s * of.rows * g.columns,
                     a.at(g.out[0]) + s * g.columns);
    });
  }
  static void pool_gradient(args const& a) {
    each_pooled(a, [&a](int const* ids, extent s) {
      constexpr pool_attributes of = g.attributes.pool();
      pool_gradient_sample<T>(of.which, of.rows, g.columns, ids, a.at(g.in[0]) + s * g.columns,
                              a.at(g.out[0]) + s * of.rows * g.columns);
    });
  }

  /// Queries, keys and values, or their gradients: slices of one matrix, or those of keys and
  /// values of another.
  template <class U>
  struct attention_slices {
    positions<U> q, k, v;
  };
  template <class U>
  static attention_slices<U> slices(U* from, U* keys_from) {
    constexpr attention_attributes of = g.attributes.attention();
    constexpr extent width = g.columns, key_width = g.columns / of.heads * of.kv_heads,
                     fused = width + 2 * key_width;
    if constexpr (of.is_fused())
      return {{from, fused}, {from + width, fused}, {from + width + key_width, fused}};
    else
      return {{from, width},
              {keys_from, 2 * key_width},
              {keys_from == nullptr ? nullptr : keys_from + key_width, 2 * key_width}};
  }
  static attention_extras<T> extras(args const& a, int rotation, int ids) {
    return {maybe(a, rotation), ids < 0 ? nullptr : a.ids(ids)};
  }
  /// Heads of keys and values, over all samples, that this part works on.
  static share own_heads(args const& a, attention_shape const& shape) {
    return share_of(shape.samples * shape.kv_heads, 1, a.part, a.parts);
  }

  static void attention(args const& a) {
    constexpr attention_shape shape = attention_shape_of(g, P::samples);
    attention_slices<T const> const x = slices<T const>(a.at(g.in[0]), maybe(a, g.in[1]));
    attention_forward<T>(attention_rows<T, (g.in[2] >= 0), least>, shape,
                         reciprocal_sqrt(T(shape.head_size)), x.q, x.k, x.v,
                         {a.at(g.out[0]), g.columns}, a.at(g.out[1]), a.workspace,
                         extras(a, g.in[2], g.in[3]), own_heads(a, shape));
  }
  static void attention_gradient(args const& a) {
    constexpr attention_shape shape = attention_shape_of(g, P::samples);
    constexpr bool fused = g.attributes.attention().is_fused();
    attention_slices<T const> const x =
        slices<T const>(a.at(g.in[1]), fused ? nullptr : maybe(a, g.in[4]));
    attention_slices<T> const d = slices<T>(maybe(a, g.out[0]), maybe(a, g.out[1]));
    attention_backward<T>(attention_rows<T, (fused && g.in[4] >= 0), least>, shape,
                          reciprocal_sqrt(T(shape.head_size)), x.q, x.k, x.v,
                          {a.at(g.in[2]), g.columns}, a.at(g.in[3]), {a.at(g.in[0]), g.columns},
                          d.q, d.k, d.v, a.workspace, extras(a, fused ? g.in[4] : -1, g.in[5]),
                          own_heads(a, shape));
  }

  /// a.loss[r] = loss_of(r, what its gradient is multiplied by, where that goes), times the row's
  /// weight. Rows of absent samples are no part of a loss: 0, and gradient 0.
  template <class Loss>
  static void each_loss(args const& a, Loss const& loss_of) {
    extent const valid = a.valid_samples < P::samples ? extent(a.valid_samples) * g.rows : rows;
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const gradient = a.at(g.out[0]) + r * g.columns;
      if (r < valid) {
        T const weight = is_weighted ? a.at(is_weighted ? g.in[op::loss_weights] : 0)[r] : T(1);
        double const loss =
            loss_of(r, is_weighted ? a.loss_scale * weight : a.loss_scale, gradient);
        a.loss[r] = is_weighted ? double(weight) * loss : loss;
      } else {
        a.loss[r] = 0;
      }
      if (r >= valid && a.wants_gradient)
        std::memset(gradient, 0, sizeof(T) * std::size_t(g.columns));
    }
  }
  static constexpr bool is_weighted = g.in[op::loss_weights] >= 0;
  /// row(further targets, as pointers to what they have from element `at` on)
  template <class Row>
  static double with_targets(args const& a, extent at, Row const& row) {
    constexpr int first = op::first_target;
    if constexpr (g.in[first + 2] >= 0)
      return row(a.at(g.in[first]) + at, a.at(g.in[first + 1]) + at, a.at(g.in[first + 2]) + at);
    else if constexpr (g.in[first + 1] >= 0)
      return row(a.at(g.in[first]) + at, a.at(g.in[first + 1]) + at);
    else if constexpr (g.in[first] >= 0)
      return row(a.at(g.in[first]) + at);
    else
      return row();
  }
  static void cross_entropy(args const& a) {
    each_loss(a, [&a](extent r, T scale, T* gradient) {
      constexpr cross_entropy_attributes of = g.attributes.cross_entropy();
      T const* const x = a.at(g.in[0]) + r * g.columns;
      T* const e = static_cast<T*>(a.workspace);
      int const label = a.ids(g.in[1])[r];
      if constexpr (of.term == row_term::formula)
        return with_targets(a, r, [&](auto const*... more) {
          using layer = leaf_at<g.leaf, typename P::leaves>;
          return label_loss_row<typename layer::formula, g.columns, T>(
              x, label, scale, a.wants_gradient, e, gradient, *more...);
        });
      else if constexpr (of.term == row_term::weighted_by_class)
        return weighted_cross_entropy_row<
            typename leaf_at<g.leaf, typename P::leaves>::class_weights, g.columns, T>(
            x, label, T(of.smoothing), T(of.z_loss), scale, a.wants_gradient, e, gradient);
      else
        return cross_entropy_row<g.columns, T>(x, label, T(of.smoothing), T(of.z_loss), scale,
                                               a.wants_gradient, e, gradient);
    });
  }
  static void squared_error(args const& a) {
    each_loss(a, [&a](extent r, T scale, T* gradient) {
      return squared_error_row<T>(g.columns, a.at(g.in[0]) + r * g.columns,
                                  a.at(g.in[1]) + r * g.columns, scale, a.wants_gradient, gradient);
    });
  }
  static void element_loss(args const& a) {
    using formula = typename leaf_at<g.leaf, typename P::leaves>::formula;
    each_loss(a, [&a](extent r, T scale, T* gradient) {
      return with_targets(a, r * g.columns, [&](auto const*... more) {
        return element_loss_row<formula, g.columns, T>(
            a.at(g.in[0]) + r * g.columns, a.at(g.in[1]) + r * g.columns, scale, a.wants_gradient,
            static_cast<T*>(a.workspace), gradient, more...);
      });
    });
  }

  static void concat(args const& a) {
    constexpr int of_left = g.attributes.concat().left;
    constexpr std::size_t left = std::size_t(of_left), right = std::size_t(g.columns - of_left);
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r) {
      T* const y = a.at(g.out[0]) + r * g.columns;
      std::memcpy(y, a.at(g.in[0]) + r * extent(left), sizeof(T) * left);
      std::memcpy(y + left, a.at(g.in[1]) + r * extent(right), sizeof(T) * right);
    }
  }
  static void slice(args const& a) {
    constexpr slice_attributes of = g.attributes.slice();
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r)
      std::memcpy(a.at(g.out[0]) + r * g.columns, a.at(g.in[0]) + r * of.columns + of.first,
                  sizeof(T) * std::size_t(g.columns));
  }

  /// A user-defined layer, all of it at once. Its functions are compiled for this region where the
  /// compiler can inline them.
  template <class L>
  [[gnu::flatten]] static void custom(args const& a) {
    custom_forward<T> with{P::samples,     g.attributes.custom().form, a.at(g.in[0]), {},
                           a.at(g.out[0]), maybe(a, g.out[1])};
    for (int i = 0; i < most_custom_parameters; ++i) with.parameter[i] = maybe(a, g.in[1 + i]);
    L::kernels::forward(with);
  }
  template <class L>
  [[gnu::flatten]] static void custom_input_gradient(args const& a) {
    pp::custom_input_gradient<T> with{P::samples,    g.attributes.custom().form, a.at(g.in[0]),
                                      a.at(g.in[1]), maybe(a, g.in[2]),          {},
                                      a.at(g.out[0])};
    for (int i = 0; i < most_custom_parameters; ++i) with.parameter[i] = maybe(a, g.in[3 + i]);
    L::kernels::input_gradient(with);
  }
  /// The layer adds, so the first micro-batch must find zeros.
  template <class L>
  [[gnu::flatten]] static void custom_weight_gradient(args const& a) {
    pp::custom_weight_gradient<T> with{P::samples,    g.attributes.custom().form, a.at(g.in[0]),
                                       a.at(g.in[1]), maybe(a, g.in[2]),          {}};
    for (int i = 0; i < L::parameters; ++i) {
      with.gradient[i] = maybe(a, g.out[i]);
      if (with.gradient[i] != nullptr && !a.accumulate)
        std::memset(with.gradient[i], 0,
                    sizeof(T) * std::size_t(L::elements(i, g.attributes.custom().form)));
    }
    L::kernels::weight_gradient(with);
  }

  static void pointwise(args const& a) {
    share const own = own_rows(a);
    for (extent r = own.begin; r < own.end; ++r)
      chain<P, G, true>::run_row(a, r, a.at(g.in[0]) + r * g.columns);
  }

  static void sum_columns(args const& a, T const* in, extent count, extent columns, T* out) {
    share const own = own_columns(a, columns);
    column_sums<T, whole>(in + own.begin, count, own.size(), columns, out + own.begin,
                          a.accumulate);
  }
  static void bias_gradient(args const& a) {
    sum_columns(a, a.at(g.in[0]), rows, g.columns, a.at(g.out[0]));
  }
  static void row_bias_gradient(args const& a) {  // a row of the table is a column of [B, T * C]
    sum_columns(a, a.at(g.in[0]), P::samples, extent(g.rows) * g.columns, a.at(g.out[0]));
  }
  static void lookup_gradient(args const& a) {
    constexpr int vocabulary = g.attributes.lookup().vocabulary;
    T* const table = a.at(g.out[0]);
    share const own = own_columns(a, g.columns);
    if (!a.accumulate)
      for (extent id = 0; id < vocabulary; ++id)
        std::memset(table + id * g.columns + own.begin, 0, sizeof(T) * std::size_t(own.size()));
    for (extent r = 0; r < rows; ++r) {
      extent const id = a.ids(g.in[1])[r];
      if (id < 0) continue;
      T const* const dy = a.at(g.in[0]) + r * g.columns;
      T* const to = table + id * g.columns;
      PIPE_INDEPENDENT
      for (extent c = own.begin; c < own.end; ++c) to[c] += dy[c];
    }
  }
};

/// Runs group G of P on one micro-batch.
template <class P, int G>
void run(arguments<typename P::element> const& a) {
  using k = group_kernel<P, G>;
  constexpr op_kind anchor = k::g.anchor;
  if constexpr (anchor == op_kind::lookup)
    k::lookup(a);
  else if constexpr (anchor == op_kind::matmul)
    k::matmul(a);
  else if constexpr (anchor == op_kind::matmul_input_gradient)
    k::matmul_input_gradient(a);
  else if constexpr (anchor == op_kind::matmul_weight_gradient)
    k::matmul_weight_gradient(a);
  else if constexpr (anchor == op_kind::norm)
    k::norm(a);
  else if constexpr (anchor == op_kind::norm_gradient)
    k::norm_gradient(a);
  else if constexpr (anchor == op_kind::norm_parameter_gradient)
    k::norm_parameter_gradient(a);
  else if constexpr (anchor == op_kind::softmax)
    k::softmax(a);
  else if constexpr (anchor == op_kind::softmax_gradient)
    k::softmax_gradient(a);
  else if constexpr (anchor == op_kind::gate)
    k::gate(a);
  else if constexpr (anchor == op_kind::gate_gradient)
    k::gate_gradient(a);
  else if constexpr (anchor == op_kind::pool)
    k::pool(a);
  else if constexpr (anchor == op_kind::pool_gradient)
    k::pool_gradient(a);
  else if constexpr (anchor == op_kind::attention)
    k::attention(a);
  else if constexpr (anchor == op_kind::attention_gradient)
    k::attention_gradient(a);
  else if constexpr (anchor == op_kind::cross_entropy)
    k::cross_entropy(a);
  else if constexpr (anchor == op_kind::squared_error)
    k::squared_error(a);
  else if constexpr (anchor == op_kind::element_loss)
    k::element_loss(a);
  else if constexpr (anchor == op_kind::concat)
    k::concat(a);
  else if constexpr (anchor == op_kind::slice)
    k::slice(a);
  else if constexpr (anchor == op_kind::pointwise)
    k::pointwise(a);
  else if constexpr (anchor == op_kind::bias_gradient)
    k::bias_gradient(a);
  else if constexpr (anchor == op_kind::row_bias_gradient)
    k::row_bias_gradient(a);
  else if constexpr (anchor == op_kind::lookup_gradient)
    k::lookup_gradient(a);
  else if constexpr (anchor == op_kind::custom)
    k::template custom<leaf_at<k::g.leaf, typename P::leaves>>(a);
  else if constexpr (anchor == op_kind::custom_input_gradient)
    k::template custom_input_gradient<leaf_at<k::g.leaf, typename P::leaves>>(a);
  else if constexpr (anchor == op_kind::custom_weight_gradient)
    k::template custom_weight_gradient<leaf_at<k::g.leaf, typename P::leaves>>(a);
  else
    static_assert(sizeof(op_kind_without::host_kernel<anchor>) > 0);
  if constexpr (streams<P, G>()) finish_streaming();
}

}  // namespace pp::host::PIPE_ISA
