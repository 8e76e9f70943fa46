// SPDX-License-Identifier: BSL-1.0
//
// Planes whose numbers are integers mod 2^31 - 1: their parameters, their inputs, and the exchanges
// between them.
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

/// The results of a run, as whole tensors.
struct field_result {
  std::vector<numbers> gradients;  // by parameter; of a buffer its sum
  numbers logits;
  long disagreements = 0;  // numbers that should be equal on all planes, and are not
  friend bool operator==(field_result const&, field_result const&) = default;
};

/// The memory of all planes of a stage for B samples, and the exchanges between them.
class field_planes {
 public:
  static constexpr int B = 2;

 protected:
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

  field_planes(pp::detail::division_view const& d, number seed, fault planted)
      : d_(d), units_(without_middles(d.local)), g_(with_units(d.local, units_)), seed_(seed),
        planted_(planted), made_(g_), back_(made_) {
    for (int m = 0; m < d_.planes; ++m) planes_.push_back(plane_of(m));
  }

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
  }  /// Operand k of o on a plane: a value, or an input, which is whole.
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

}  // namespace laws
