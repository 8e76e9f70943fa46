// SPDX-License-Identifier: BSL-1.0
//
// The compiler of models on one page, from a graph to launches: each constant is one pass, with an
// evaluation budget of its own. The passes are functions of plain values; here is the memory that
// they fill, of exact size, since unused room in a constant costs compile time at every copy.
//
// Constants begin with a generic lambda, `[](auto...)`: for a non-generic one g++ also instantiates
// the conversion to a function pointer and evaluates the body twice. In a generic one nvcc
// mis-resolves template parameters and treats a failed requirement as an error.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/passes/costs.hpp>
#include <pipe/passes/partition.hpp>
#include <pipe/passes/recompute.hpp>
#include <pipe/passes/stage_programs.hpp>
#include <pipe/passes/uses.hpp>

namespace pp::detail {

/// Model M cut into `Stages` by partition policy `Cutter` and fused into kernel groups: all that
/// does not depend on the schedule, so that kernels are instantiated on it.
///
/// needs: 1 <= Stages <= units of M
template <class M, int Stages, class Cutter, int Samples, number_widths Widths, class Recompute>
struct fused_model {
  using model = M;
  static constexpr int stages = Stages, samples = Samples;
  static constexpr number_widths widths = Widths;
  /// Whether kernels read copies of parameters in the type of values.
  static constexpr bool has_copies = Widths.has_copies();
  using recompute = Recompute;

  // ---- differentiate ----

  /// The forward graph, and the gradients of its values and parameters.
  static constexpr graph_view forward = M::graph;
  /// The graph without ops and values.
  static constexpr graph_view outline = model_tables<M>::outline;
  static constexpr graph_size sizes = M::graph_type::size;
  static constexpr int units = sizes.units;
  /// A copy, since constants that name the graph are slow to compile: see compiled_model.
  static constexpr repetition_list noted = M::graph.repetitions;
  static constexpr view<repetition> repetitions{noted.items, noted.count};
  static constexpr gradient_size gradient_sizes = count_gradients(M::graph);
  static constexpr auto gradients = differentiate<gradient_sizes>(M::graph);
  static constexpr gradient_view backward = gradients;
  /// Forward values and gradients, in one numbering.
  static constexpr int value_count = sizes.values + gradient_sizes.values;

  /// By parameter, whether it has a transposed copy.
  static constexpr auto transposed = [](auto...) {
    list<bool, sizes.parameters> is;
    for (int p = 0; p < is.size(); ++p) is[p] = Widths.has_transposes && backward.transposed[p];
    return is;
  }();
  /// The values that the loss makes and reads.
  static constexpr int loss = forward.loss().out[0].index, logits = forward.loss().in[0].index;

  /// The numbers of the random streams as kernels read them from memory: 0, 1, 2 ...
  static constexpr int stream_count = count_streams(forward.ops);
  static constexpr auto streams = [](auto...) {
    list<int, stream_count> numbers;
    for (int i = 0; i < stream_count; ++i) numbers[i] = i;
    return numbers;
  }();

  // ---- partition ----

  /// Costs of forward, B and W by unit and per sample: those of recomputation are not known before
  /// the cut.
  static constexpr auto training_costs = [](auto...) {
    list<unit_cost, units> c;
    add_costs(op_list::forward, forward.ops, c.items);
    add_costs(op_list::input_gradients, backward.input_ops, c.items);
    add_costs(op_list::weight_gradients, backward.weight_ops, c.items);
    return c;
  }();
  /// cuts[s] is the first unit of stage s; cuts[stages] is the number of units.
  static constexpr auto cuts = [](auto...) {
    list<long, units> total;
    for (int u = 0; u < units; ++u) total[u] = training_time(training_costs[u]);
    list<int, stages + 1> c;
    Cutter::cut(total, units, stages, c);
    return c;
  }();
  /// shape: [units] -> stage
  static constexpr auto stage_of_unit = [](auto...) {
    list<short, units> stage;
    for (int s = 0; s < stages; ++s)
      for (int u = cuts[s]; u < cuts[s + 1]; ++u) stage[u] = short(s);
    return stage;
  }();

  // ---- boundaries ----

  struct value_memory {
    list<int, value_count> elements;
    list<bool, value_count> is_statistic;
  };
  /// Elements per sample of every value, and which of them are statistics.
  static constexpr auto described_values = [](auto...) {
    value_memory m;
    describe_values(forward, backward, m.elements.items, m.is_statistic.items, Samples);
    return m;
  }();
  static constexpr value_table values{{described_values.elements.items, value_count},
                                      {described_values.is_statistic.items, value_count},
                                      sizes.values,
                                      Widths,
                                      Samples};
  /// By forward value: the last unit that reads it.
  static constexpr auto last_reader = [](auto...) {
    list<short, sizes.values> reader;
    find_last_readers(forward.ops, reader.items);
    return reader;
  }();
  /// `count` of the items are in use: the room is for three per crossing, a value, its gradient and
  /// itself again.
  template <int Items>
  struct boundary_memory {
    list<boundary_table::entry, stages + 1> entries;
    list<handed_on, Items> items;
    int count = 0;
  };
  static constexpr auto crossing_values = [](auto...) {
    boundary_memory<3 * count_crossings(forward, last_reader.items, cuts.items, stages)> b;
    sink<handed_on> items{b.items.items};
    find_boundaries(forward, backward, values, last_reader.items, cuts.items, stages,
                    b.entries.items, items);
    b.count = items.count;
    return b;
  }();
  /// Boundary s is before stage s: stages + 1 of them, the outer two empty.
  static constexpr boundary_table boundaries{{crossing_values.entries.items, stages + 1},
                                             {crossing_values.items.items, crossing_values.count}};

  // ---- recompute ----

  /// By value, whether the model reads it once; empty where values have 32 bits.
  static constexpr auto reads = [](auto...) {
    list<bool, Widths.has_copies() ? value_count : 0> once;
    if constexpr (Widths.has_copies()) {
      list<int, value_count> times;
      find_read_once(forward.ops, backward.input_ops, backward.weight_ops, value_count, times.items,
                     once.items);
    }
    return once;
  }();
  static constexpr bool const* read_once = Widths.has_copies() ? reads.items : nullptr;

  struct recompute_memory {
    list<bool, sizes.ops> runs;
    list<bool, sizes.values> dropped;
    int ops = 0;
  };
  /// By op, whether it runs again; by forward value, whether it is dropped; all false without
  /// recomputation.
  static constexpr recompute_memory recomputed = [](auto...) {
    recompute_memory r;
    if constexpr (recompute::recomputes) {
      list<bool, sizes.values> read;
      recompute_plan plan{r.runs.items, r.dropped.items};
      plan_recompute(forward, backward, rule_of<recompute>(), stage_of_unit.items, read_once,
                     read.items, plan);
      r.ops = plan.ops;
    }
    return r;
  }();
  /// The ops that run again, in the order of the graph.
  static constexpr auto recomputed_ops = [](auto...) {
    list<op, recomputed.ops> ops;
    sink<op> to{ops.items};
    list_recomputed(forward.ops, recomputed.runs.items, to);
    return ops;
  }();
  static constexpr ops_by_list ops =
      lists_of(forward, backward, view<op>{recomputed_ops.items, recomputed.ops});
  /// The ops of one list, for constants that need no other: see compiled_model.
  template <op_list L>
  static constexpr view<op> ops_of() {
    if constexpr (L == op_list::forward)
      return forward.ops;
    else if constexpr (L == op_list::input_gradients)
      return backward.input_ops;
    else if constexpr (L == op_list::weight_gradients)
      return backward.weight_ops;
    else
      return {recomputed_ops.items, recomputed.ops};
  }
  /// Costs per unit and sample.
  static constexpr auto costs = [](auto...) {
    list<unit_cost, units> c = training_costs;
    if constexpr (recomputed.ops > 0)
      add_costs(op_list::recompute, ops_of<op_list::recompute>(), c.items);
    return c;
  }();

  // ---- fuse ----

  struct count_memory {
    list<int, value_count> by_all, by_backward;
    list<int, recomputed.ops == 0 ? 0 : value_count> by_recompute;
    per_op_list<int> operands;  // an upper bound
  };
  /// Reads of each value, which decide what fused kernels store.
  static constexpr count_memory counted = [](auto...) {
    count_memory n;
    n.operands = count_backward_uses(forward, backward, n.by_backward.items);
    n.by_all = n.by_backward;
    if constexpr (recomputed.ops > 0) n.by_recompute = n.by_backward;
    count_other_uses(forward, ops_of<op_list::recompute>(), boundaries.items,
                     recomputed.dropped.items, recompute::keeps_last,
                     use_memory{n.by_all.items, n.by_backward.items, n.by_recompute.items},
                     n.operands);
    return n;
  }();
  static constexpr per_op_list<int const*> uses =
      uses_by_list(counted.by_all.items, counted.by_backward.items,
                   recomputed.ops > 0 ? counted.by_recompute.items : counted.by_backward.items);

  static constexpr per_op_list<int> logits_read = reads_of(logits, uses);

  template <int Ops, int Operands>
  struct fuse_memory {
    list<segment, Ops> segments;
    list<operand, Operands> operands;
    list<int, Ops> distinct;
    int segment_count = 0, operand_count = 0, distinct_count = 0;
    constexpr operator fused_view() const {
      return fused_view{{segments.items, segment_count},
                        {operands.items, operand_count},
                        {distinct.items, distinct_count}};
    }
  };
  /// Ops of each list: at most as many segments and distinct groups.
  static constexpr per_op_list<int> op_counts{
      {sizes.ops, gradient_sizes.input_ops, gradient_sizes.weight_ops, recomputed.ops}};
  /// One list of ops, fused. A constant for each list, so that each has an evaluation budget.
  template <op_list L>
  static constexpr auto fuse_list = [](auto...) {
    constexpr int count = op_counts[L], bound = counted.operands[L];
    fuse_memory<count, bound> f;
    if constexpr (count > 0) {
      list<std::uint64_t, count + 1> hashes;
      list<int, count + 1> after;
      fused_sinks out{{f.segments.items}, {f.operands.items}, {f.distinct.items}};
      list<int, bound> sources;
      fuse(ops_of<L>(), repetitions, uses[L], read_once, stage_of_unit.items,
           fuse_scratch{hashes.items, after.items, sources.items}, out);
      f.segment_count = out.segments.count;
      f.operand_count = out.operands.count;
      f.distinct_count = out.distinct.count;
    }
    return f;
  }();
  static constexpr per_op_list<fused_view> fused_lists{
      {fuse_list<op_list::forward>, fuse_list<op_list::input_gradients>,
       fuse_list<op_list::weight_gradients>, fuse_list<op_list::recompute>}};
  static constexpr kernel_lists kernels{ops, uses, fused_lists, read_once};

  // ---- kernel groups, for the backend to instantiate ----

  /// At most as many groups as the lists have distinct ones.
  template <int Recomputed, int Groups>
  struct number_memory {
    list<int, Recomputed> recomputed;
    list<group, Groups> shapes;
    group_numbers numbers;
  };
  /// The numbers of all groups, as yet without their pointer to the recomputed ones, and what the
  /// groups are.
  static constexpr auto numbered = [](auto...) {
    constexpr int again = fuse_list<op_list::recompute>.distinct_count;
    number_memory<again, fuse_list<op_list::forward>.distinct_count +
                             fuse_list<op_list::input_gradients>.distinct_count +
                             fuse_list<op_list::weight_gradients>.distinct_count + again>
        n;
    n.numbers = number_groups(kernels, n.recomputed.items);
    group_numbers numbers = n.numbers;
    numbers.recomputed = n.recomputed.items;
    describe_groups(kernels, numbers, n.shapes.items);
    return n;
  }();
  static constexpr group_numbers numbers{numbered.numbers.first, numbered.recomputed.items,
                                         numbered.numbers.count};
  static constexpr int groups = numbers.count;
  /// By number: the description of each kernel group.
  static constexpr view<group> shapes{numbered.shapes.items, groups};
  static constexpr group const& group_at(int g) { return shapes[g]; }
  /// By number: the slots that the group writes, as a bit mask.
  static constexpr auto written = [](auto...) {
    list<unsigned, groups> slots;
    for (int g = 0; g < groups; ++g) slots[g] = slots_written(shapes[g]);
    return slots;
  }();

  // ---- what launches are made from ----

  /// By parameter of the model.
  static constexpr auto parameter_elements = [](auto...) {
    view<parameter> const all = outline.parameters;
    list<long, sizes.parameters> n;
    for (int p = 0; p < all.count; ++p) n[p] = all.items[p].elements();
    return n;
  }();
  static constexpr launch_source for_launches{
      fused_lists, numbers, written.items, values, {parameter_elements.items, sizes.parameters}};
};

/// The same recomputation where some stages keep all values, so that forward stores them.
template <recompute_policy Recompute>
struct keeps_in_some : Recompute {
  static constexpr bool keeps_last = Recompute::recomputes;
};

/// Model M compiled: its stages as constants, for the passes over single stages and the runtime.
///
/// SplitsBackward: the schedule runs B and W apart, so values that B makes for W must outlive B.
/// RecomputesAhead: it runs R, so values that R makes must outlive it.
template <class M, int Stages, class Cutter, int Samples, number_widths Widths, bool SplitsBackward,
          class Recompute, bool RecomputesAhead = false>
struct compilation
    : fused_model<M, Stages, Cutter, Samples, Widths,
                  std::conditional_t<RecomputesAhead, keeps_in_some<Recompute>, Recompute>> {
  using fused = typename compilation::fused_model;
  static constexpr bool splits_backward = SplitsBackward, recomputes_ahead = RecomputesAhead;

  /// All of it as one value, which the passes over single stages read.
  static constexpr compiled_model whole = [](auto...) {
    return compiled_model{fused::outline.parameters,
                          fused::transposed.items,
                          fused::loss,
                          fused::logits,
                          fused::stages,
                          fused::cuts.items,
                          fused::stage_of_unit.items,
                          fused::values,
                          fused::boundaries,
                          fused::recomputed.dropped.items,
                          fused::fused_lists,
                          fused::logits_read,
                          fused::numbers,
                          fused::written.items,
                          splits_backward,
                          recomputes_ahead};
  }();
  /// By stage: its ranges in the lists of the model.
  static constexpr auto ranges = [](auto...) {
    list<stage_range, fused::stages> r;
    find_ranges(fused::forward, fused::backward, whole, r.items);
    return r;
  }();

  /// The programs and the memory of stage S, with all values stored, or with values dropped and
  /// recomputed. Chains: the backend's chain rule, see passes/chains.hpp.
  template <int S, bool Drops, class Chains = no_chains>
  using programs = stage_programs<compilation, S, Drops, Chains>;
};

}  // namespace pp::detail
