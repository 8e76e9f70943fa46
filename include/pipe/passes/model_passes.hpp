// SPDX-License-Identifier: BSL-1.0
//
// The passes over a whole model, in the order in which they run. Each pass makes one result from
// the results before it, in a constant (compilation.hpp) or on the heap (heap_compilation.hpp): the
// types of the numbers that a pass is given choose the storage, see storage.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include <pipe/passes/costs.hpp>
#include <pipe/passes/recompute.hpp>
#include <pipe/passes/stage.hpp>
#include <pipe/passes/storage.hpp>
#include <pipe/passes/uses.hpp>

namespace pp::detail {

// ---- partition ----

/// The layouts of the parameters' transposed copies.
///
/// shape: -> [parameters]
template <class Parameters>
constexpr auto find_transposed(view<parameter> all, gradient_view const& backward,
                               number_widths widths, Parameters parameters) {
  auto layouts = array_of<copy_layout>(parameters);
  for (int p = 0; p < layouts.size() && widths.has_transposes; ++p) {
    if (backward.transposed[p] == 0) continue;
    bool const in_panels = widths.has_panels && backward.transposed[p] == transposed_by::products &&
                           panels_pay(all.items[p].rows(), all.items[p].columns(), widths.value);
    layouts[p] = in_panels ? copy_layout::panels : copy_layout::rows;
  }
  return layouts;
}

/// Costs of forward, B and W by unit, per sample. The costs of recomputation are not known before
/// the cut.
template <class Units>
constexpr auto find_training_costs(graph_view const& g, gradient_view const& backward,
                                   Units units) {
  auto costs = array_of<unit_cost>(units);
  add_costs(op_list::forward, g.ops, costs.begin());
  add_costs(op_list::input_gradients, backward.input_ops, costs.begin());
  add_costs(op_list::weight_gradients, backward.weight_ops, costs.begin());
  return costs;
}

/// Cuts the model into stages, between units, by the training times of the units. cut(times, units,
/// stages, cuts) fills cuts[stages + 1], as partition policies do.
///
/// law: cuts[s] is the first unit of stage s; cuts[stages] is the number of units
template <class Units, class Stages, class Cut>
constexpr auto cut_units(unit_cost const* costs, Units units, Stages stages, Cut const& cut) {
  auto total = array_of<long>(units);
  for (int u = 0; u < total.size(); ++u) total[u] = training_time(costs[u]);
  auto cuts = array_of<int>(stages + fixed<1>{});
  cut(total, int(units), int(stages), cuts);
  return cuts;
}

/// The stage of each unit.
///
/// shape: cuts[stages + 1] -> [units]
template <class Units>
constexpr auto find_stages(int const* cuts, int stages, Units units) {
  auto stage = array_of<short>(units);
  for (int s = 0; s < stages; ++s)
    for (int u = cuts[s]; u < cuts[s + 1]; ++u) stage[u] = short(s);
  return stage;
}

// ---- boundaries ----

template <class Values>
struct value_memory {
  array<int, Values> elements;
  array<bool, Values> is_statistic;
  /// forward: the number of forward values
  constexpr value_table table(int forward, number_widths widths, int samples) const {
    int const values = int(elements.size());
    return {{elements.begin(), values}, {is_statistic.begin(), values}, forward, widths, samples};
  }
};
/// The elements of every value, and whether the value is a statistic.
template <class Values>
constexpr auto describe_values(graph_view const& g, gradient_view const& backward, int samples,
                               Values values) {
  value_memory<Values> m{array_of<int>(values), array_of<bool>(values)};
  describe_values(g, backward, m.elements.begin(), m.is_statistic.begin(), samples);
  return m;
}

/// The last unit that reads a value, by forward value.
template <class Values>
constexpr auto find_last_readers(view<op> ops, Values values) {
  auto reader = array_of<short>(values);
  find_last_readers(ops, reader.begin());
  return reader;
}

/// Room for the boundaries of a model; the first `count` items are in use.
template <class Cuts, class Items>
struct boundary_memory {
  array<boundary_table::entry, Cuts> entries;
  array<handed_on, Items> items;
  int count = 0;
  constexpr boundary_table table() const {
    return {{entries.begin(), int(entries.size())}, {items.begin(), count}};
  }
};
/// The `stages` + 1 boundaries of the stages.
///
/// room: 3 * count_crossings(): for each value that crosses a cut the value, its gradient, and the
///       value as it was made again; and `stages` for each input that
///       has a gradient
template <class Stages, class Items>
constexpr auto find_boundaries(graph_view const& g, gradient_view const& backward,
                               value_table const& values, short const* last_reader, int const* cuts,
                               Stages stages, Items room) {
  auto const entries = stages + fixed<1>{};
  boundary_memory<std::remove_const_t<decltype(entries)>, Items> b{
      array_of<boundary_table::entry>(entries), array_of<handed_on>(room)};
  sink<handed_on> items{b.items.begin()};
  find_boundaries(g, backward, values, last_reader, cuts, stages, b.entries.begin(), items);
  b.count = items.count;
  return b;
}

// ---- recompute ----

/// Whether the model reads a value once, by value: see joins_product().
///
/// values: the number of values, or 0 where nothing is joined: then the result is empty
template <class Values>
constexpr auto find_read_once(graph_view const& g, gradient_view const& backward, Values values) {
  auto once = array_of<bool>(values);
  if (once.size() == 0) return once;
  auto times = array_of<int>(values);
  find_read_once(g.ops, backward.input_ops, backward.weight_ops, values, times.begin(),
                 once.begin());
  return once;
}

/// Room for a recompute_plan: by op, whether the op runs again; by forward value, whether the value
/// is dropped. Without recomputation all are false.
template <class Ops, class Values>
struct recompute_memory {
  array<bool, Ops> runs;
  array<bool, Values> dropped;
  int ops = 0;
};
template <class Ops, class Values>
constexpr auto find_recomputed(graph_view const& g, gradient_view const& backward,
                               recompute_rule rule, short const* stage_of_unit,
                               bool const* read_once, Ops ops, Values values) {
  recompute_memory<Ops, Values> r{array_of<bool>(ops), array_of<bool>(values)};
  if (!rule.recomputes) return r;
  auto read = array_of<bool>(values);
  recompute_plan plan{r.runs.begin(), r.dropped.begin()};
  plan_recompute(g, backward, rule, stage_of_unit, read_once, read.begin(), plan);
  r.ops = plan.ops;
  return r;
}

/// The ops that run again, in the order of the graph.
template <class Count>
constexpr auto list_recomputed(view<op> ops, bool const* runs, Count count) {
  auto again = array_of<op>(count);
  sink<op> to{again.begin()};
  if (again.size() > 0) list_recomputed(ops, runs, to);
  return again;
}

/// Costs by unit, per sample, with the costs of recomputation.
template <class Costs, class Units>
constexpr auto find_costs(Costs const& training, view<op> recomputed, Units units) {
  auto costs = array_of<unit_cost>(units);
  copy_items(training, costs);
  if (recomputed.count > 0) add_costs(op_list::recompute, recomputed, costs.begin());
  return costs;
}

// ---- fuse ----

/// The number of reads of each value: by all ops, by backward, and, if anything is recomputed, by
/// backward and recomputation.
template <class Values, class Recomputed>
struct count_memory {
  array<int, Values> by_all, by_backward;
  array<int, Recomputed> by_recompute;
  per_op_list<int> operands{};  // upper bounds, by list
  constexpr per_op_list<int const*> by_list() const {
    return uses_by_list(by_all.begin(), by_backward.begin(),
                        by_recompute.size() > 0 ? by_recompute.begin() : by_backward.begin());
  }
};
/// Counts the reads of values, which decide what fused kernels store. All lists are counted first:
/// a value inside a group is stored only if an op outside the group reads it.
///
/// again: the number of values, or 0 without recomputation. Other parameters: see count_other_uses.
template <class Values, class Recomputed>
constexpr auto count_reads(graph_view const& g, gradient_view const& backward, view<op> recomputed,
                           boundary_table const& boundaries, bool const* dropped, bool keeps_last,
                           Values values, Recomputed again) {
  count_memory<Values, Recomputed> n{array_of<int>(values), array_of<int>(values),
                                     array_of<int>(again)};
  n.operands = count_backward_uses(g, backward, n.by_backward.begin());
  copy_items(n.by_backward, n.by_all);
  if constexpr (requires { copy_items(n.by_backward, n.by_recompute); })
    if (n.by_recompute.size() > 0) copy_items(n.by_backward, n.by_recompute);
  count_other_uses(g, recomputed, boundaries.items, dropped, keeps_last,
                   use_memory{n.by_all.begin(), n.by_backward.begin(), n.by_recompute.begin()},
                   n.operands);
  return n;
}

/// Room for a fused list: as many segments and distinct groups as ops.
template <class Ops, class Operands>
struct fuse_memory {
  array<segment, Ops> segments;
  array<operand, Operands> operands;
  array<int, Ops> distinct;
  int segment_count = 0, operand_count = 0, distinct_count = 0;
  constexpr operator fused_view() const {
    return fused_view{{segments.begin(), segment_count},
                      {operands.begin(), operand_count},
                      {distinct.begin(), distinct_count}};
  }
};
/// Fuses one list of ops.
///
/// count: the number of ops. bound: at least the number of operands that the ops read and write
template <class Ops, class Operands>
constexpr auto fuse_list(view<op> ops, view<repetition> repetitions, int const* uses,
                         bool const* read_once, short const* stage_of_unit, Ops count,
                         Operands bound) {
  fuse_memory<Ops, Operands> f{array_of<segment>(count), array_of<operand>(bound),
                               array_of<int>(count)};
  if (ops.count == 0) return f;
  auto hashes = array_of<std::uint64_t>(count + fixed<1>{});
  auto after = array_of<int>(count + fixed<1>{});
  auto sources = array_of<int>(bound);
  fused_sinks out{{f.segments.begin()}, {f.operands.begin()}, {f.distinct.begin()}};
  fuse(ops, repetitions, uses, read_once, stage_of_unit,
       fuse_scratch{hashes.begin(), after.begin(), sources.begin()}, out);
  f.segment_count = out.segments.count;
  f.operand_count = out.operands.count;
  f.distinct_count = out.distinct.count;
  return f;
}

// ---- kernel groups ----

/// The sum of the numbers of distinct groups of all lists.
constexpr int count_distinct(per_op_list<fused_view> const& fused) {
  int n = 0;
  for (op_list l : every_op_list) n += fused[l].distinct.count;
  return n;
}

template <class Recomputed, class Groups>
struct number_memory {
  array<int, Recomputed> recomputed;
  array<group, Groups> shapes;
  group_numbers numbers{};  // their pointer to `recomputed` is set by table()
  constexpr group_numbers table() const {
    return {numbers.first, recomputed.begin(), numbers.count};
  }
};
/// Numbers the distinct groups of all lists and describes them.
///
/// again: the number of distinct groups of the recomputed ops. groups: at least the number of
/// groups of all lists
template <class Recomputed, class Groups>
constexpr auto number_groups(kernel_lists const& kernels, Recomputed again, Groups groups) {
  number_memory<Recomputed, Groups> n{array_of<int>(again), array_of<group>(groups)};
  n.numbers = number_groups(kernels, n.recomputed.begin());
  describe_groups(kernels, n.table(), n.shapes.begin());
  return n;
}

/// The operands that a group writes, as a bit mask, by number of the group.
template <class Groups>
constexpr auto find_written(group const* shapes, Groups groups) {
  auto operands = array_of<unsigned>(groups);
  for (int g = 0; g < operands.size(); ++g) operands[g] = operands_written(shapes[g]);
  return operands;
}

/// The ranges of a stage in the lists of the model, by stage.
template <class Stages>
constexpr auto find_ranges(graph_view const& g, gradient_view const& backward,
                           compiled_model const& m, Stages stages) {
  auto ranges = array_of<stage_range>(stages);
  find_ranges(g, backward, m, ranges.begin());
  return ranges;
}

}  // namespace pp::detail
