// SPDX-License-Identifier: BSL-1.0
//
// An interpreter of graphs in the field of the integers mod 2^31 - 1, on all planes of a stage:
// forward, backward, and every exchange. Sums in a field are exact in any order, so a divided graph
// has exactly the gradients of the whole one, or a rule is wrong. Formulas are stand-ins of the
// same structure: they read the same operands, and mix the same rows and columns. Gradients are
// linear in dy, and they need not be derivatives.
#pragma once

#include "laws/field_rows.hpp"

namespace laws {

/// One run over B samples, forward and backward.
class field_run : field_rows {
 public:
  field_run(pp::detail::division_view const& d, number seed, fault planted = fault::none)
      : field_rows(d, seed, planted) {
    for (auto const& o : g_.ops) run(o);
    is_backward_ = true;
    for (auto const& o : back_.input_ops) run(o);
    for (auto const& o : back_.weight_ops) run(o);
  }
  /// The gradients and logits. whole: the undivided graph
  field_result outcome(pp::detail::graph_view const& whole) {
    field_result r;
    for (int p = 0; p < g_.parameters.count; ++p)
      r.gradients.push_back(gradient_of(p, whole.parameters[p]));
    auto const& loss = g_.loss();
    if (loss.in[0].where == space::value) {
      auto const& as = d_.values[loss.in[0].index];
      r.logits = assembled(loss.in[0].index, as.where, as.of,
                           whole.loss().rows * long(whole.loss().columns));
    }
    r.disagreements = disagreements_;
    return r;
  }

 private:
  numbers gradient_of(int p, pp::detail::parameter const& whole) {
    needs(long(whole_rows(p)) * whole_columns(p) == whole.elements(), "box of another parameter");
    numbers g(std::size_t(whole.elements()), 0);
    auto const& as = d_.parameters[p];
    bool const is_forgotten = has(fault::sum_of_parameters_is_forgotten) ||
                              (has(fault::sum_of_norms_is_forgotten) && is_of_norm(p));
    for (plane const& x : planes_)
      for (std::size_t e = 0; e < x.gradients[std::size_t(p)].size(); ++e) {
        number const one = x.gradients[std::size_t(p)][e];
        long const at = as.place_of(long(e), whole_columns(p), x.index, d_.planes);
        if (at < 0) continue;
        number& to = g[std::size_t(at)];
        if (as.is_divided() || x.index == 0)
          to = one;
        else if (!as.has_partial_gradient)
          disagreements_ += to != one;
        else if (!is_forgotten)
          add_to(to, one);
      }
    return g;
  }
  bool is_of_norm(int p) const {
    for (op const& o : g_.ops)
      if (o.kind == kind::norm)
        for (int k = 1; k < 3; ++k)
          if (pp::detail::is_parameter(o.in[k]) && o.in[k].index == p) return true;
    return false;
  }
  void run(op const& o) {
    if (o.kind == kind::exchange) return exchange(o);
    for (plane& x : planes_) run_on(x, o);
  }
  void run_on(plane& x, op const& o) {
    switch (int(o.kind)) {
      case int(kind::lookup):
      case int(kind::bag):
      case int(kind::lookup_gradient):
      case int(kind::bag_gradient): return lookup(x, o);
      case int(kind::matmul):
      case int(kind::matmul_input_gradient): return product(x, o);
      case int(kind::matmul_weight_gradient): return product_gradient(x, o);
      case int(kind::convolution):
      case int(kind::convolution_input_gradient):
      case int(kind::convolution_weight_gradient): return convolution(x, o);
      case int(kind::norm):
      case int(kind::norm_gradient):
      case int(kind::norm_parameter_gradient): return norm(x, o);
      case int(kind::group_norm):
      case int(kind::group_norm_gradient):
      case int(kind::group_parameter_gradient): return group_norm(x, o);
      case int(kind::batch_statistics):
      case int(kind::batch_norm):
      case int(kind::batch_sums):
      case int(kind::batch_norm_gradient):
      case int(kind::batch_parameter_gradient):
      case int(kind::batch_running_sums): return batch_norm(x, o);
      case int(kind::attention):
      case int(kind::attention_gradient): return attention(x, o);
      case int(kind::cross_entropy_statistics):
      case int(kind::cross_entropy): return cross_entropy(x, o);
      case int(kind::pool):
      case int(kind::pool_gradient):
      case int(kind::resample):
      case int(kind::resample_gradient): return cells(x, o);
      case int(kind::concat):
      case int(kind::slice):
      case int(kind::transpose): return copied(x, o);
      case int(kind::bias_gradient):
      case int(kind::row_bias_gradient):
      case int(kind::prelu_parameter_gradient): return sums(x, o);
      default: return by_rows(x, o);
    }
  }
  void lookup(plane& x, op const& o) {
    bool const is_forward = o.kind == kind::lookup || o.kind == kind::bag;
    auto const of = o.attributes.lookup();
    int const C = o.columns, p = is_forward ? o.in[1].index : o.out[0].index,
              ids = (is_forward ? o.in[0] : o.in[1]).index;
    auto const& as = d_.parameters[p];
    int const V = as.is_divided() ? as.of.total() : of.vocabulary,
              first = as.is_divided() && !has(fault::table_begins_at_row_0)
                          ? x.index * of.vocabulary
                          : 0;
    numbers const dy = is_forward ? numbers{} : read(x, o, 0);
    if (is_forward) result(x, o);
    for (long r = 0; r < long(B) * o.rows; ++r)
      for (int i = 0; i < of.ids; ++i) {
        int const row = int(input(ids, r * of.ids + i) % modulus % number(V)) - first;
        if (row < 0 || row >= of.vocabulary) continue;
        for (int c = 0; c < C; ++c)
          if (is_forward)
            add_to(x.values[std::size_t(o.out[0].index)][std::size_t(r * C + c)],
                   weight(x, o.in[1], long(row) * C + c));
          else
            add_gradient(x, o.out[0], long(row) * C + c, dy[std::size_t(r * C + c)]);
      }
  }
  void product(plane& x, op const& o) {
    int const K = o.attributes.contraction().inner, N = o.columns;
    bool const is_transposed = o.in[1].where == space::parameter_transposed;
    numbers const& a = read(x, o, 0);
    numbers const& w = x.parameters[std::size_t(o.in[1].index)];
    needs(long(w.size()) == long(K) * N, "weights of another size");
    needs(long(a.size()) == long(B) * o.rows * K, "operand of another size");
    numbers& y = result(x, o);
    needs(long(y.size()) == long(B) * o.rows * N, "result of another size");
    for (long i = 0; i < long(B) * o.rows; ++i)
      for (long k = 0; k < K; ++k)
        for (long c = 0; c < N; ++c)
          add_to(y[std::size_t(i * N + c)],
                 times(a[std::size_t(i * K + k)],
                       w[std::size_t(is_transposed ? c * K + k : k * N + c)]));
  }
  void product_gradient(plane& x, op const& o) {
    numbers const a = read(x, o, 0);
    numbers const& dy = read(x, o, 1);
    long const rows = long(B) * o.rows, K = long(a.size()) / rows, N = long(dy.size()) / rows;
    needs(K * N == long(x.gradients[std::size_t(o.out[0].index)].size()), "gradient's size");
    for (long i = 0; i < rows; ++i)
      for (long k = 0; k < K; ++k)
        for (long c = 0; c < N; ++c)
          add_gradient(x, o.out[0], k * N + c,
                       times(a[std::size_t(i * K + k)], dy[std::size_t(i * N + c)]));
  }
  void convolution(plane& x, op const& o) {
    auto const of = o.attributes.convolution();
    int const ins = of.in_rows(), outs = of.out_rows(), channels = of.channels / of.groups,
              filters = of.filters / of.groups;
    bool const is_forward = o.kind == kind::convolution,
               is_input = o.kind == kind::convolution_input_gradient;
    numbers const a = read(x, o, 0);
    numbers const dy = is_forward || is_input ? numbers{} : read(x, o, 1);
    numbers none;
    numbers& y = is_forward || is_input ? result(x, o) : none;
    for (long b = 0; b < B; ++b)
      for (int q = 0; q < outs; ++q)
        for (int k = 0; k < of.taps(); ++k)
          for (int f = 0; f < of.filters; ++f)
            for (int c = 0; c < channels; ++c) {
              long const cell = (b * ins + (q * 3 + k) % ins) * of.channels +
                                f / filters * channels + c,
                         out = (b * outs + q) * of.filters + f,
                         w = (long(k) * channels + c) * of.filters + f;
              if (is_forward)
                add_to(y[std::size_t(out)], times(a[std::size_t(cell)], weight(x, o.in[1], w)));
              else if (is_input)
                add_to(y[std::size_t(cell)], times(a[std::size_t(out)], weight(x, o.in[1], w)));
              else
                add_gradient(x, o.out[0], w, times(a[std::size_t(cell)], dy[std::size_t(out)]));
            }
  }
  void attention(plane& x, op const& o) {
    bool const is_forward = o.kind == kind::attention;
    auto const of = o.attributes.attention();
    bool const fused = of.is_fused();
    op const& f = g_.ops[o.origin];
    int const R = f.rows, H = of.heads, d = f.columns / H, Y = d * H, KV = d * of.kv_heads,
              W = fused ? Y + 2 * KV : Y, S = fused ? R : of.keys, width = fused ? W : 2 * KV,
              first = fused ? Y : 0, serves = H / of.kv_heads;
    numbers const q = read(x, o, is_forward ? 0 : 1);
    numbers const kv = fused ? q : read(x, o, is_forward ? 1 : 4);
    numbers const dy = is_forward ? numbers{} : read(x, o, 0);
    needs(long(q.size()) == long(B) * R * W && long(kv.size()) == long(B) * S * width, "heads");
    numbers lse = is_forward ? numbers(std::size_t(B * R * H), 0) : read(x, o, 3);
    numbers y(std::size_t(B * R * (is_forward ? Y : W)), 0), dkv(std::size_t(B * S * width), 0);
    numbers& of_keys = fused ? y : dkv;
    for (long b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (long i = 0; i < R; ++i)
          for (long j = 0; j < (of.causal && fused ? i + 1 : S); ++j) {
            std::size_t const at_q = std::size_t((b * R + i) * W + h * d),
                              at_k = std::size_t((b * S + j) * width + first + h / serves * d),
                              at_v = at_k + std::size_t(KV),
                              at_y = std::size_t((b * R + i) * Y + h * d);
            number s = 0, ds = 0;
            number& l = lse[std::size_t((b * R + i) * H + h)];
            for (std::size_t e = 0; e < std::size_t(d); ++e)
              add_to(s, times(q[at_q + e], kv[at_k + e]));
            if (is_forward) {
              add_to(l, s);
              for (std::size_t e = 0; e < std::size_t(d); ++e)
                add_to(y[at_y + e], times(s, kv[at_v + e]));
              continue;
            }
            for (std::size_t e = 0; e < std::size_t(d); ++e)
              add_to(ds, times(dy[at_y + e], kv[at_v + e]));
            for (std::size_t e = 0; e < std::size_t(d); ++e) {
              add_to(y[at_q + e], times(ds, times(l, kv[at_k + e])));
              add_to(of_keys[at_k + e], times(ds, q[at_q + e]));
              add_to(of_keys[at_v + e], times(s, dy[at_y + e]));
            }
          }
    if (o.out[0].where == space::value) put(result(x, o), y);
    if (is_forward) put(result(x, o, 1), lse);
    if (!is_forward && o.out[1].where == space::value) put(result(x, o, 1), dkv);
  }
  static void put(numbers& to, numbers const& from) {
    needs(to.size() == from.size(), "result of another size");
    to = from;
  }
  /// The loss of logits x has the gradient x s0 + s1 + V + s3, and s2 at the label, with the
  /// statistics s of the row over all columns.
  void cross_entropy(plane& x, op const& o) {
    auto const of = o.attributes.cross_entropy();
    bool const is_loss = o.kind == kind::cross_entropy;
    numbers const a = read(x, o, 0);
    long const rows = long(B) * o.rows, C = long(a.size()) / rows;
    int const V = of.vocabulary > 0 && !has(fault::vocabulary_of_part) ? of.vocabulary : int(C);
    auto const& as = d_.values[o.in[0].where == space::value ? o.in[0].index : 0];
    bool const by_columns = of.vocabulary > 0;
    auto const column_of = [&](long c) {
      if (!by_columns) return c;
      long const at = x.index * C + c;
      return at < of.vocabulary ? at : -1;
    };
    int const part_rows = o.rows;
    auto const label_of = [&](long r) {
      long row = r % part_rows;
      if (!by_columns && as.is_divided() && !has(fault::label_by_row_of_part))
        row += x.index * part_rows;
      int const all = by_columns ? part_rows : as.is_divided() ? part_rows * d_.planes : part_rows;
      return long(mixed(seed_ * 7 + number(r / part_rows * all + row)) %
                  number(by_columns ? of.vocabulary : C));
    };
    numbers const gathered = is_loss && by_columns ? read(x, o, op::loss_weights - 1) : numbers{};
    numbers& y = result(x, o);
    for (long r = 0; r < rows; ++r) {
      number s[4]{};
      if (gathered.empty())
        for (long c = 0; c < C; ++c) {
          long const column = column_of(c), own = has(fault::label_by_column_of_part) ? c : column;
          number const e = a[std::size_t(r * C + c)];
          if (column < 0 && !has(fault::padding_is_counted)) continue;
          number const weight = number(has(fault::class_weight_by_column_of_part) ? c
                                       : column < 0                               ? 0
                                                                                  : column) +
                                2;
          add_to(s[0], e);
          add_to(s[1], plus(times(e, e), 1));  // counts columns, as e^0 does
          if (own == label_of(r)) add_to(s[2], e);
          add_to(s[3], times(weight, e));
        }
      else
        for (int m = 0; m < d_.planes; ++m)
          for (int k = 0; k < 4; ++k)
            if (!has(fault::statistics_of_own_columns) || m == x.index)
              add_to(s[k], gathered[std::size_t((r * d_.planes + m) * 4 + k)]);
      if (!is_loss) {
        for (int k = 0; k < 4; ++k) y[std::size_t(r * 4 + k)] = s[k];
        continue;
      }
      for (long c = 0; c < C; ++c) {
        long const column = column_of(c), own = has(fault::label_by_column_of_part) ? c : column;
        if (column < 0) continue;
        number& to = y[std::size_t(r * C + c)];
        to = plus(plus(times(a[std::size_t(r * C + c)], s[0]), s[1]), plus(number(V), s[3]));
        if (own == label_of(r)) add_to(to, plus(s[2], 1));
      }
    }
  }
};

/// The gradients and logits of a graph on some planes.
inline field_result run_in_field(pp::detail::graph_view const& g, int planes, number seed,
                                 fault planted = fault::none,
                                 pp::detail::operand_reading const* readings = nullptr) {
  pp::detail::heap_division const d(g, planes, readings);
  return field_run(d, seed, planted).outcome(g);
}

}  // namespace laws
