// SPDX-License-Identifier: BSL-1.0
//
// An interpreter of graphs in the field of the integers mod 2^31 - 1, on all planes of a stage:
// forward, backward, and every exchange. Sums in a field are exact in any order, so a divided graph
// has exactly the gradients of the whole one, or a rule is wrong. Formulas are stand-ins of the
// same structure: they read the same operands, and mix the same rows and columns. Gradients are
// linear in dy, and they need not be derivatives.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <pipe/passes/heap_compilation.hpp>
#include <pipe/passes/heap_division.hpp>

namespace laws {

/// Faults that a run plants: what an engine or a rule might do wrong.
enum class fault {
  none,
  sum_of_backward_is_forgotten,     // partial gradients of values stay partial
  sum_of_parameters_is_forgotten,   // partial gradients of parameters stay partial
  sum_of_norms_is_forgotten,        // those of norms alone
  dropout_by_place_in_part,         // the same bits on planes with different rows or columns
  label_by_column_of_part,          //
  label_by_row_of_part,             //
  class_weight_by_column_of_part,   //
  vocabulary_of_part,               // the loss divides by its own number of columns
  statistics_of_own_columns,        // the loss reads its own plane's statistics
  padding_is_counted,               // by the statistics
  table_begins_at_row_0,            // on every plane
  runs_are_one_range,               // of fused weights, such as queries, keys and values
  own_part_is_the_first,            // of a whole value
  parts_are_gathered_as_one_range,  // where a value has several runs or blocks
};

using number = std::uint64_t;
using numbers = std::vector<number>;
inline constexpr number modulus = (number(1) << 31) - 1;

inline number plus(number a, number b) {
  number const s = a + b;
  return s >= modulus ? s - modulus : s;
}
inline number times(number a, number b) { return a * b % modulus; }
/// Adds term to sum.
inline void add_to(number& sum, number term) { sum = plus(sum, term); }
inline number mixed(number x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// What a run gives, as whole tensors.
struct field_result {
  std::vector<numbers> gradients;  // by parameter; of a buffer its sum
  numbers logits;
  long disagreements = 0;  // numbers that should be equal on all planes, and are not
  friend bool operator==(field_result const&, field_result const&) = default;
};

/// One run over B samples, forward and backward.
class field_run {
 public:
  static constexpr int B = 2;

  field_run(pp::detail::division_view const& d, number seed, fault planted = fault::none)
      : d_(d), units_(without_middles(d.local)), g_(with_units(d.local, units_)), seed_(seed),
        planted_(planted), made_(g_), back_(made_) {
    for (int m = 0; m < d_.planes; ++m) planes_.push_back(plane_of(m));
    for (auto const& o : g_.ops) run(o);
    is_backward_ = true;
    for (auto const& o : back_.input_ops) run(o);
    for (auto const& o : back_.weight_ops) run(o);
  }
  /// The gradients and logits. whole: the undivided graph
  field_result result(pp::detail::graph_view const& whole) {
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
  using op = pp::detail::op;
  using operand = pp::detail::operand;
  using space = pp::detail::space;
  using kind = pp::op_kind;
  using division_type = pp::detail::division_type;
  using blocks = pp::detail::blocks;

  /// Units whose backward reads what forward has stored: what a Reversible makes again is equal.
  static std::vector<pp::detail::unit_record> without_middles(pp::detail::graph_view const& g) {
    std::vector<pp::detail::unit_record> units(g.units.items, g.units.items + g.units.count + 1);
    for (auto& u : units) u.middle = -1;
    return units;
  }
  static pp::detail::graph_view with_units(pp::detail::graph_view g,
                                           std::vector<pp::detail::unit_record> const& units) {
    g.units = {units.data(), g.units.count};
    return g;
  }

  /// The memory of a plane.
  struct plane {
    int index = 0;
    std::vector<numbers> values, parameters, gradients;
  };

  static void needs(bool is_so, char const* what) {
    if (!is_so) throw std::logic_error(what);
  }
  bool has(fault f) const { return planted_ == f; }

  // ---- parameters and inputs ----

  /// The box of a parameter, as a faulty engine may cut it.
  pp::detail::parameter_division box(int p) const {
    pp::detail::parameter_division b = d_.parameters[p];
    if (has(fault::runs_are_one_range) && b.is_divided() && b.of.total() % d_.planes == 0)
      b.of = blocks{b.of.count, b.of.total()};
    return b;
  }
  plane plane_of(int m) {
    plane x;
    x.index = m;
    x.values.resize(std::size_t(g_.values.count + back_.values.count));
    for (int p = 0; p < g_.parameters.count; ++p) {
      auto const& of = g_.parameters[p];
      int owner = p;
      while (g_.parameters[owner].tied_to >= 0) owner = g_.parameters[owner].tied_to;
      numbers w(std::size_t(of.elements()));
      for (std::size_t e = 0; e < w.size(); ++e) {
        long const at = box(p).place_of(long(e), whole_columns(p), m, d_.planes);
        w[e] = at < 0 ? 0 : mixed(seed_ * 1000003 + number(owner) * 65537 + number(at)) % modulus;
      }
      x.gradients.emplace_back(w.size(), 0);
      x.parameters.push_back(std::move(w));
    }
    return x;
  }
  int whole_columns(int p) const {
    auto const b = d_.parameters[p];
    return b.along == pp::detail::parameter_division::axis::columns ? b.of.count * b.of.total()
                                                                    : g_.parameters[p].columns();
  }
  int whole_rows(int p) const {
    auto const b = d_.parameters[p];
    return b.along == pp::detail::parameter_division::axis::rows ? b.of.count * b.of.total()
                                                                 : g_.parameters[p].rows();
  }
  number input(int which, long e) const {
    return mixed(seed_ * 77 + number(which) * 1001 + number(e));
  }
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

  // ---- exchanges ----

  /// The whole value that all planes have together.
  numbers assembled(int v, division_type from, blocks const& of, long elements) {
    numbers all(std::size_t(B * elements), 0);
    for (plane const& x : planes_) {
      numbers const& own = x.values[std::size_t(v)];
      long const n = long(own.size()) / B;
      for (long b = 0; b < B; ++b)
        for (long e = 0; e < n; ++e) {
          number const one = own[std::size_t(b * n + e)];
          long const at = from != division_type::divided ? e
                          : has(fault::parts_are_gathered_as_one_range)
                              ? x.index * n + e
                              : of.place_of(e, x.index, d_.planes);
          if (at < 0 || at >= elements) continue;
          number& to = all[std::size_t(b * elements + at)];
          if (from == division_type::partial)
            add_to(to, one);
          else if (from == division_type::divided || x.index == 0)
            to = one;
          else
            disagreements_ += to != one;
        }
    }
    return all;
  }
  void exchange(op const& o) {
    auto const of = o.attributes.exchange();
    bool const is_input = o.in[0].where == space::input;
    long const parts = long(of.rows) * of.columns,
               elements =
                   of.from == division_type::divided ? of.of.count * long(of.of.total()) : parts;
    numbers all;
    if (is_input) {
      for (long e = 0; e < B * elements; ++e) all.push_back(input(o.in[0].index, e) % modulus);
    } else {
      needs(long(planes_[0].values[std::size_t(o.in[0].index)].size()) == B * parts,
            "exchange of another size");
      all = assembled(o.in[0].index, of.from, of.of, elements);
    }
    for (plane& x : planes_) {
      numbers& y = result(x, o);
      long const n = long(y.size()) / B;
      bool const keeps_own = has(fault::sum_of_backward_is_forgotten) && is_backward_ &&
                             of.from == division_type::partial;
      for (long b = 0; b < B; ++b)
        for (long e = 0; e < n; ++e) {
          int const part =
              has(fault::own_part_is_the_first) && of.from == division_type::whole ? 0 : x.index;
          long const at = of.to == division_type::divided ? of.of.place_of(e, part, d_.planes) : e;
          if (at < 0) continue;
          y[std::size_t(b * n + e)] =
              keeps_own ? x.values[std::size_t(o.in[0].index)][std::size_t(b * elements + at)]
                        : all[std::size_t(b * elements + at)];
        }
    }
  }

  // ---- ops ----

  /// The result of o on a plane, zeros at first.
  numbers& result(plane& x, op const& o, int which = 0) {
    int const v = o.out[which].index;
    long const elements =
        v < g_.values.count ? g_.values[v].elements : back_.values[v - g_.values.count].elements;
    bool const of_batch = o.kind == kind::batch_statistics || o.kind == kind::batch_sums;
    numbers& y = x.values[std::size_t(v)];
    y.assign(std::size_t((of_batch ? 1 : B) * elements), 0);
    return y;
  }
  void run(op const& o) {
    if (o.kind == kind::exchange) return exchange(o);
    for (plane& x : planes_) run_on(x, o);
  }
  /// Operand k of o on a plane: a value, or an input, which is whole.
  numbers const& read(plane& x, op const& o, int k) {
    if (o.in[k].where == space::value) return x.values[std::size_t(o.in[k].index)];
    needs(o.in[k].where == space::input, "operand");
    long const n = g_.inputs[o.in[k].index].form.elements();
    input_.clear();
    for (long e = 0; e < B * n; ++e) input_.push_back(input(o.in[k].index, e) % modulus);
    return input_;
  }
  /// A parameter, or ones where the operand is absent.
  number weight(plane const& x, operand p, long e) const {
    return p.where == space::none ? 1 : x.parameters[std::size_t(p.index)][std::size_t(e)];
  }
  void add_gradient(plane& x, operand p, long e, number term) {
    if (p.where == space::parameter_gradient || p.where == space::buffer_sum)
      add_to(x.gradients[std::size_t(p.index)].at(std::size_t(e)), term);
  }
  /// The place in the whole of number e of the first result of forward op f.
  long place(op const& f, plane const& x, long e) const {
    auto const& as = d_.values[f.out[0].index];
    return as.is_divided() ? as.of.place_of(e, x.index, d_.planes) : e;
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
  void norm(plane& x, op const& o) {
    int const C = o.columns;
    long const rows = long(B) * o.rows;
    if (o.kind == kind::norm) {
      numbers const a = read(x, o, 0);
      numbers& y = result(x, o);
      numbers& s = result(x, o, 1);
      needs(long(s.size()) == 2 * rows && long(a.size()) == rows * C, "rows of a norm");
      for (long r = 0; r < rows; ++r) {
        for (int c = 0; c < C; ++c) {
          number const e = a[std::size_t(r * C + c)];
          add_to(s[std::size_t(2 * r)], e);
          add_to(s[std::size_t(2 * r + 1)], times(e, e));
        }
        for (int c = 0; c < C; ++c) {
          number& to = y[std::size_t(r * C + c)];
          to = times(plus(a[std::size_t(r * C + c)], s[std::size_t(2 * r)]), weight(x, o.in[1], c));
          if (o.in[2].where != space::none) add_to(to, weight(x, o.in[2], c));
        }
      }
    } else if (o.kind == kind::norm_gradient) {
      numbers const dy = read(x, o, 0), a = read(x, o, 1), s = read(x, o, 3);
      numbers& dx = result(x, o);
      for (long r = 0; r < rows; ++r) {
        number sum = 0;
        for (int c = 0; c < C; ++c)
          add_to(sum, times(times(dy[std::size_t(r * C + c)], weight(x, o.in[2], c)),
                            a[std::size_t(r * C + c)]));
        for (int c = 0; c < C; ++c)
          dx[std::size_t(r * C + c)] =
              plus(times(dy[std::size_t(r * C + c)], weight(x, o.in[2], c)),
                   times(s[std::size_t(2 * r + 1)], sum));
      }
    } else {
      numbers const dy = read(x, o, 0), a = read(x, o, 1), s = read(x, o, 2);
      for (long r = 0; r < rows; ++r)
        for (int c = 0; c < C; ++c) {
          number const d = dy[std::size_t(r * C + c)];
          add_gradient(x, o.out[0], c,
                       times(d, plus(a[std::size_t(r * C + c)], s[std::size_t(2 * r)])));
          add_gradient(x, o.out[1], c, d);
        }
    }
  }
  void group_norm(plane& x, op const& o) {
    op const& f = g_.ops[o.origin];
    int const C = o.columns, G = f.attributes.group().groups, own = C / G;
    long const R = o.rows;
    bool const is_forward = o.kind == kind::group_norm,
               is_input = o.kind == kind::group_norm_gradient;
    numbers const a = read(x, o, is_forward ? 0 : 1), dy = is_forward ? numbers{} : read(x, o, 0);
    numbers sums_of = is_forward ? numbers{} : read(x, o, is_input ? 3 : 2);
    numbers none;
    if (is_forward) {
      numbers& s = result(x, o, 1);
      needs(long(s.size()) == 2L * B * G, "statistics of groups");
      for (long b = 0; b < B; ++b)
        for (long e = 0; e < R * C; ++e)
          add_to(s[std::size_t(2 * (b * G + e % C / own))], a[std::size_t(b * R * C + e)]);
      sums_of = s;
    }
    numbers& y = is_forward || is_input ? result(x, o) : none;
    for (long b = 0; b < B; ++b) {
      numbers of_group(std::size_t(G), 0);
      for (long e = 0; is_input && e < R * C; ++e)
        add_to(of_group[std::size_t(e % C / own)],
               times(dy[std::size_t(b * R * C + e)], weight(x, f.in[1], e % C)));
      for (long e = 0; e < R * C; ++e) {
        long const at = b * R * C + e, c = e % C;
        number const s = sums_of[std::size_t(2 * (b * G + c / own))];
        if (is_forward) {
          y[std::size_t(at)] = times(plus(a[std::size_t(at)], s), weight(x, o.in[1], c));
          if (o.in[2].where != space::none) add_to(y[std::size_t(at)], weight(x, o.in[2], c));
        } else if (is_input) {
          y[std::size_t(at)] = plus(times(dy[std::size_t(at)], weight(x, f.in[1], c)),
                                    times(s, of_group[std::size_t(c / own)]));
        } else {
          add_gradient(x, o.out[0], c, times(dy[std::size_t(at)], plus(a[std::size_t(at)], s)));
          add_gradient(x, o.out[1], c, dy[std::size_t(at)]);
        }
      }
    }
  }
  void batch_norm(plane& x, op const& o) {
    int const C = o.columns;
    if (o.kind == kind::batch_statistics) {
      numbers const a = read(x, o, 0);
      numbers& s = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        add_to(s[e % std::size_t(C)], a[e]);
        add_to(s[std::size_t(C) + e % std::size_t(C)], times(a[e], a[e]));
      }
      for (int c = 0; c < C; ++c) s[std::size_t(2 * C + c)] = weight(x, o.in[1], c);
    } else if (o.kind == kind::batch_norm) {
      numbers const a = read(x, o, 0), s = read(x, o, 1);
      numbers& y = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        std::size_t const c = e % std::size_t(C);
        y[e] =
            times(plus(a[e], times(s[c], s[std::size_t(2 * C) + c])), weight(x, o.in[2], long(c)));
        if (o.in[3].where != space::none) add_to(y[e], weight(x, o.in[3], long(c)));
      }
    } else if (o.kind == kind::batch_sums) {
      numbers const dy = read(x, o, 0), a = read(x, o, 1), s = read(x, o, 2);
      numbers& sums = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        std::size_t const c = e % std::size_t(C);
        add_to(sums[c], times(dy[e], plus(a[e], s[c])));
        add_to(sums[std::size_t(C) + c], dy[e]);
      }
    } else if (o.kind == kind::batch_norm_gradient) {
      numbers const dy = read(x, o, 0), a = read(x, o, 1);
      numbers const sums =
          o.in[3].where == space::none ? numbers(std::size_t(2 * C), 0) : read(x, o, 3);
      numbers& dx = result(x, o);
      for (std::size_t e = 0; e < a.size(); ++e) {
        std::size_t const c = e % std::size_t(C);
        dx[e] = plus(times(dy[e], weight(x, o.in[4], long(c))),
                     plus(sums[c], times(a[e], sums[std::size_t(C) + c])));
      }
    } else {
      numbers const s = read(x, o, 0);
      for (int c = 0; c < C; ++c) {
        add_gradient(x, o.out[0], c, s[std::size_t(c)]);
        add_gradient(x, o.out[1], c, s[std::size_t(C + c)]);
      }
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
  void cells(plane& x, op const& o) {
    bool const is_forward = o.kind == kind::pool || o.kind == kind::resample;
    op const& f = g_.ops[o.origin];
    int const C = o.columns, in = pp::detail::shape_of_operand(f, 0).rows, out = f.rows;
    numbers const a = read(x, o, 0);
    numbers& y = result(x, o);
    int const reads = f.kind == kind::pool ? in : 4;
    for (long b = 0; b < B; ++b)
      for (long s = 0; s < out; ++s)
        for (int k = 0; k < reads; ++k)
          for (int c = 0; c < C; ++c) {
            long const cell = (b * in + (s * 3 + k) % in) * C + c, at = (b * out + s) * C + c;
            if (is_forward)
              add_to(y[std::size_t(at)], times(number(k + 1), a[std::size_t(cell)]));
            else
              add_to(y[std::size_t(cell)], times(number(k + 1), a[std::size_t(at)]));
          }
  }
  void copied(plane& x, op const& o) {
    int const C = o.columns;
    long const rows = long(B) * o.rows;
    numbers& y = result(x, o);
    needs(long(y.size()) == rows * C, "result of another size");
    if (o.kind == kind::transpose) {
      numbers const& a = read(x, o, 0);
      for (long b = 0; b < B; ++b)
        for (long r = 0; r < o.rows; ++r)
          for (long c = 0; c < C; ++c)
            y[std::size_t((b * o.rows + r) * C + c)] = a[std::size_t((b * C + c) * o.rows + r)];
      return;
    }
    if (o.kind == kind::slice) {
      auto const of = o.attributes.slice();
      numbers const& a = read(x, o, 0);
      for (long r = 0; r < rows; ++r)
        for (long c = 0; c < C; ++c)
          y[std::size_t(r * C + c)] = a.at(std::size_t(r * of.columns + of.first + c));
      return;
    }
    auto const of = o.attributes.concat();
    bool const is_parameter = pp::detail::is_parameter(o.in[0]);
    numbers const left = is_parameter ? numbers{} : read(x, o, 0), right = read(x, o, 1);
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < C; ++c)
        y[std::size_t(r * C + c)] = c >= of.left
                                        ? right.at(std::size_t(r * (C - of.left) + c - of.left))
                                    : is_parameter ? weight(x, o.in[0], c)
                                                   : left.at(std::size_t(r * of.left + c));
  }
  /// The gradients of parameters that are added or multiplied to every row.
  void sums(plane& x, op const& o) {
    numbers const dy = read(x, o, 0);
    long const C = o.columns, n = long(dy.size()) / B;
    for (long e = 0; e < long(dy.size()); ++e)
      if (o.kind == kind::row_bias_gradient)
        add_gradient(x, o.out[0], e % n, dy[std::size_t(e)]);
      else if (o.kind == kind::bias_gradient)
        add_gradient(x, o.out[0], e % C, dy[std::size_t(e)]);
      else
        add_gradient(x, o.out[0], o.attributes.slope().is_shared ? 0 : e % C,
                     times(dy[std::size_t(e)], read(x, o, 1)[std::size_t(e)]));
  }
  /// Kinds that read one row of each operand, or one element.
  void by_rows(plane& x, op const& o) {
    op const& f = g_.ops[o.origin];
    int const C = o.columns;
    numbers const a = read(x, o, 0);
    numbers const z = o.ins > 1 && o.in[1].where == space::value ? read(x, o, 1) : numbers{};
    numbers& y = result(x, o);
    long const rows = long(B) * o.rows, n = o.rows * long(C);
    auto const in_row = [&](numbers const& v, long width, long r, auto const& term) {
      number s = 0;
      for (long c = 0; c < width; ++c) add_to(s, term(v[std::size_t(r * width + c)], c));
      return s;
    };
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < C; ++c) {
        std::size_t const e = std::size_t(r * C + c);
        number& to = y.at(e);
        switch (int(o.kind)) {
          case int(kind::bias): to = plus(a.at(e), weight(x, o.in[1], c)); break;
          case int(kind::row_bias): to = plus(a.at(e), weight(x, o.in[1], long(e) % n)); break;
          case int(kind::map): to = plus(times(a.at(e), a[e]), 3); break;
          case int(kind::map_gradient): to = times(a.at(e), plus(z.at(e), 1)); break;
          case int(kind::prelu):
          case int(kind::prelu_gradient): {
            operand const slope = o.in[o.kind == kind::prelu ? 1 : 2];
            to = times(a.at(e), weight(x, slope, o.attributes.slope().is_shared ? 0 : c));
            break;
          }
          case int(kind::add): to = plus(a.at(e), z.at(e)); break;
          case int(kind::multiply): to = times(a.at(e), z.at(e)); break;
          case int(kind::dropout): {
            long const own = long(e) % n,
                       at = has(fault::dropout_by_place_in_part) ? own : place(f, x, own);
            number const bits = mixed(seed_ * 31 + number(o.in[1].index) * 7919 +
                                      number(long(e) / n) * 104729 + number(at));
            to = bits % 10 == 0 ? 0 : a.at(e);
            break;
          }
          case int(kind::response_norm):
          case int(kind::response_norm_gradient): {
            numbers const& v = o.kind == kind::response_norm ? a : z;
            number s = 1;
            for (long q = c > 2 ? c - 2 : 0; q < C && q < c + 3; ++q)
              add_to(s, v[std::size_t(r * C + q)]);
            to = times(a.at(e), s);
            break;
          }
          case int(kind::softmax):
            to = times(a.at(e),
                       in_row(a, C, r, [](number v, long i) { return times(v, number(i + 1)); }));
            break;
          case int(kind::softmax_gradient):
            to = plus(a.at(e), in_row(a, C, r, [&](number v, long i) {
                        return times(v, z.at(std::size_t(r * C + i)));
                      }));
            break;
          case int(kind::gate):
            to = times(a.at(std::size_t(2 * r * C + c)), a.at(std::size_t((2 * r + 1) * C + c)));
            break;
          case int(kind::gate_gradient): {
            long const half = C / 2, other = c < half ? c + half : c - half;
            to = times(a.at(std::size_t(r * half + c % half)), z.at(std::size_t(r * C + other)));
            break;
          }
          case int(kind::row_dot): {
            long const width = o.attributes.contraction().inner;
            to = in_row(a, width, r, [&](number v, long i) {
              return times(v, z.at(std::size_t(r * width + i)));
            });
            break;
          }
          case int(kind::row_scale): to = times(a.at(e), z.at(std::size_t(r))); break;
          case int(kind::squared_error):
          case int(kind::element_loss):
          case int(kind::row_loss):
          case int(kind::contrast): {
            long const own = long(e) % n, at = place(f, x, own);
            number const target = mixed(seed_ * 13 + number(long(e) / n) * 104729 + number(at));
            number const s = o.kind == kind::row_loss || o.kind == kind::contrast
                                 ? in_row(a, C, r, [](number v, long) { return v; })
                                 : 1;
            to = plus(times(a.at(e), s), target % modulus);
            break;
          }
          default: needs(false, pp::detail::name_of(o.kind));
        }
      }
  }

  pp::detail::division_view const d_;
  std::vector<pp::detail::unit_record> const units_;
  pp::detail::graph_view const g_;
  number const seed_;
  fault const planted_;
  pp::detail::heap_gradients const made_;
  pp::detail::gradient_view const back_;
  std::vector<plane> planes_;
  numbers input_;
  bool is_backward_ = false;
  long disagreements_ = 0;
};

/// The gradients and logits of a graph on some planes.
inline field_result run_in_field(pp::detail::graph_view const& g, int planes, number seed,
                                 fault planted = fault::none,
                                 pp::detail::reading const* readings = nullptr) {
  pp::detail::heap_division const d(g, planes, readings);
  return field_run(d, seed, planted).result(g);
}

}  // namespace laws
