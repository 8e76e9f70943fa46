// SPDX-License-Identifier: BSL-1.0
//
// The bytes of each layer, by which a model is partitioned where cuts tie in time: what a rank
// keeps of a layer, and what a cut before the layer transfers. They are sums over layers whatever
// the cuts are, so they leave out what depends on cuts and on kernels: boundary slots and scratch.
#pragma once

#include <pipe/graph/gradient_graph.hpp>
#include <pipe/passes/recompute.hpp>
#include <pipe/passes/storage.hpp>
#include <pipe/passes/value_table.hpp>

namespace pp::detail {

/// A model before it is cut.
struct uncut_model {
  graph_view forward;
  gradient_view backward;
  value_table values;
  short const* last_reader = nullptr;
};

/// By unit: bytes that its rank keeps anyway, and for each micro-batch in flight; and bytes of a
/// micro-batch that cross a cut before the unit, forward and backward.
template <class Units>
struct unit_bytes {
  array<long, Units> state, kept, crossing;
};

/// Adds the bytes of parameters to their units. bytes_of(parameter): with gradient, optimizer state
/// and copies in another type
constexpr void add_state(view<parameter> parameters, unsigned char const* transposed,
                         number_widths widths, auto const& bytes_of, long* state) {
  for (int i = 0; i < parameters.count; ++i) {
    parameter const& p = parameters.items[i];
    state[p.unit] += bytes_of(p);
    if (widths.has_transposes && transposed[i] != 0)
      state[p.unit] += align_up(p.elements() * widths.value);
  }
}

/// Adds the bytes of values that backward reads, unless the rule drops them, to the units that make
/// the values.
///
/// shape: is_read[values of forward], initially false
constexpr void add_kept(graph_view const& g, gradient_view const& backward,
                        value_table const& values, recompute_rule rule, bool* is_read, long* kept) {
  for (view<op> const& ops : {backward.input_ops, backward.weight_ops})
    for (int i = 0; i < ops.count; ++i)
      for (operand const& x : ops.items[i].in)
        if (x.where == space::value && x.index < values.forward) is_read[x.index] = true;
  for (int i = 0; i < g.ops.count; ++i) {
    op const& o = g.ops.items[i];
    if (rule.recomputes && (rule.drops >> int(o.kind) & 1)) continue;
    for (operand const& out : o.out)
      if (out.where == space::value && is_read[out.index]) kept[o.unit] += values.bytes(out.index);
  }
}

/// Adds the bytes of values, and of their gradients, to the cuts that they cross.
///
/// shape: crossing[units] of 0, has_gradient[values of forward], initially false
constexpr void add_crossing(graph_view const& g, gradient_view const& backward,
                            value_table const& values, short const* last_reader, bool* has_gradient,
                            int units, long* crossing) {
  for (detail::crossing const& x : backward.crossings)
    if (x.value >= 0 && x.gradient.where == space::value) has_gradient[x.value] = true;
  for (int v = 0; v < values.forward; ++v) {
    int const made = g.values.items[v].unit, last = last_reader[v];
    if (last <= made) continue;
    long const bytes = (has_gradient[v] ? 2 : 1) * values.bytes(v);
    crossing[made + 1] += bytes;  // at first what each cut has more than the one before
    if (last + 1 < units) crossing[last + 1] -= bytes;
  }
  for (int u = 1; u < units; ++u) crossing[u] += crossing[u - 1];
}

/// The bytes of all units. bytes_of: see add_state
template <class Units, class Values>
constexpr auto find_unit_bytes(uncut_model const& m, recompute_rule rule, auto const& bytes_of,
                               Units units, Values forward_values) {
  unit_bytes<Units> b{array_of<long>(units), array_of<long>(units), array_of<long>(units)};
  auto is_read = array_of<bool>(forward_values), has_gradient = array_of<bool>(forward_values);
  add_state(m.forward.parameters, m.backward.transposed, m.values.widths, bytes_of,
            b.state.begin());
  add_kept(m.forward, m.backward, m.values, rule, is_read.begin(), b.kept.begin());
  add_crossing(m.forward, m.backward, m.values, m.last_reader, has_gradient.begin(), int(units),
               b.crossing.begin());
  return b;
}

}  // namespace pp::detail
