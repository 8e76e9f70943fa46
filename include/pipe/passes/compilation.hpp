// SPDX-License-Identifier: BSL-1.0
//
// The compiler inside the compiler, from a model to launches: each member is one pass, a constant
// with an evaluation budget of its own. Everything here is a value; the runtime and the backends
// read it.
//
// Constants begin with a generic lambda, `[](auto...)`: of an ordinary one g++ also compiles the
// conversion to a pointer to function, and for that evaluates everything once more. Inside, nvcc
// takes a template parameter for another type of that name, and a failed requirement for an error.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/cost.hpp>
#include <pipe/graph/differentiate.hpp>
#include <pipe/passes/fuse.hpp>
#include <pipe/passes/partition.hpp>
#include <pipe/passes/recompute.hpp>
#include <pipe/passes/stage_programs.hpp>

namespace pp {

/// Bytes of a number: of parameters, gradients and statistics; of all other values, and of what
/// kernels read of parameters.
struct number_widths {
  int element = 4, value = 4;
};

/// Cuts model M into `Stages` by partition policy `Cutter` and compiles every stage.
///
/// needs: 1 <= Stages <= units of M
/// SplitsBackward: the schedule runs B and W apart, so what B makes for W must outlive B
template <class M, int Stages, class Cutter, int Samples, number_widths Widths, bool SplitsBackward,
          class Recompute>
struct compilation {
  using model = M;
  static constexpr int stages = Stages, samples = Samples;
  static constexpr number_widths widths = Widths;
  /// Kernels read copies of parameters, which are of the type of values.
  static constexpr bool has_copies = Widths.value != Widths.element;
  static constexpr bool splits_backward = SplitsBackward;
  using recompute = Recompute;
  /// The lists of ops: forward, backward_input, backward_weight, and what runs again.
  static constexpr int op_lists = 4;

  static constexpr auto const& forward = M::graph;
  static constexpr int units = M::graph.size.units;
  static constexpr gradient_size gradient_sizes = count_gradients(M::graph);
  static constexpr auto backward = differentiate<gradient_sizes>(M::graph);
  static constexpr int value_count = M::graph.size.values + gradient_sizes.values;

  /// The numbers of the streams of random bits, as kernels read them: 0, 1, 2 ...
  static constexpr int stream_count = [](auto...) {
    int n = 0;
    for (int i = 0; i < M::graph.size.ops; ++i) n += M::graph.ops[i].kind == op_kind::dropout;
    return n;
  }();
  static constexpr auto streams = [](auto...) {
    list<int, stream_count> numbers;
    for (int i = 0; i < stream_count; ++i) numbers[i] = i;
    return numbers;
  }();

  /// Costs per unit and sample: forward, B, W.
  static constexpr auto costs = [](auto...) {
    list<list<cost, units>, 3> c;
    for (int i = 0; i < M::graph.size.ops; ++i)
      c[0][M::graph.ops[i].unit] += cost_of(copy_of(M::graph.ops[i]));
    for (int i = 0; i < gradient_sizes.input_ops; ++i)
      c[1][backward.input_ops[i].unit] += cost_of(copy_of(backward.input_ops[i]));
    for (int i = 0; i < gradient_sizes.weight_ops; ++i)
      c[2][backward.weight_ops[i].unit] += cost_of(copy_of(backward.weight_ops[i]));
    return c;
  }();

  static constexpr auto cuts = [](auto...) {
    list<long, units> total;
    for (int u = 0; u < units; ++u)
      for (int k = 0; k < 3; ++k) total[u] += estimated_time(costs[k][u]);
    list<int, stages + 1> c;
    Cutter::cut(total, units, stages, c);
    return c;
  }();
  static constexpr auto stage_of_unit = [](auto...) {
    list<short, units> stage;
    for (int s = 0; s < stages; ++s)
      for (int u = cuts[s]; u < cuts[s + 1]; ++u) stage[u] = short(s);
    return stage;
  }();

  /// Of one sample.
  static constexpr long value_elements(int v) {
    return v < M::graph.size.values ? M::graph.values[v].elements
                                    : backward.values[v - M::graph.size.values].elements;
  }
  /// Statistics of rows and logarithms of sums: as wide as parameters.
  static constexpr auto is_statistic = [](auto...) {
    list<bool, M::graph.size.values> wide;
    for (int i = 0; i < M::graph.size.ops; ++i) {
      op const o = M::graph.ops[i];
      bool const has_statistics = o.kind == op_kind::norm || o.kind == op_kind::attention;
      if (has_statistics && o.out[1].where == space::value) wide[o.out[1].index] = true;
    }
    return wide;
  }();
  static constexpr bool is_wide(int v) { return v < M::graph.size.values && is_statistic[v]; }
  static constexpr long value_bytes(int v) {
    return align_up(value_elements(v) * Samples * (is_wide(v) ? Widths.element : Widths.value));
  }

  struct in_stage {
    constexpr int operator()(int unit) const { return stage_of_unit[unit]; }
  };
  static constexpr auto recomputed = plan_recompute<Recompute>(M::graph, backward, in_stage{});
  static constexpr auto again = ops_again<recomputed.ops>(M::graph, recomputed);
  /// Cost of what runs again, per unit and sample.
  static constexpr auto again_costs = [](auto...) {
    list<cost, units> c;
    for (op const& o : again) c[o.unit] += cost_of(o);
    return c;
  }();

  /// The last unit that reads each forward value.
  static constexpr auto last_reader = [](auto...) {
    list<short, M::graph.size.values> reader;
    for (int i = 0; i < M::graph.size.ops; ++i) {
      op const o = M::graph.ops[i];
      for (int k = 0; k < o.ins; ++k)
        if (o.in[k].where == space::value) reader[o.in[k].index] = o.unit;
    }
    return reader;
  }();
  /// Whether forward value v is made before unit u and read from there on: it crosses a cut there.
  static constexpr bool crosses(int v, int u) {
    return v < M::graph.first_value(u) && last_reader[v] >= u;
  }
  static constexpr int most_crossing = [](auto...) {
    int most = 0;
    for (int s = 1; s < stages; ++s) {
      int n = 0;
      for (int v = 0; v < M::graph.first_value(cuts[s]); ++v) n += crosses(v, cuts[s]);
      if (n > most) most = n;
    }
    return most;
  }();
  /// The boundary before stage s: all values that cross the cut, and the gradients that come back
  /// for them.
  static constexpr auto boundaries = [](auto...) {
    list<boundary<most_crossing>, stages + 1> b;
    for (int s = 1; s < stages; ++s)
      for (int v = 0; v < M::graph.first_value(cuts[s]); ++v)
        if (crosses(v, cuts[s])) {
          b[s].forward.push_back(handed_on{value_operand(v), b[s].forward_bytes});
          b[s].forward_bytes += value_bytes(v);
          operand const gradient = backward.entering(cuts[s], v);
          if (gradient.where != space::value || find(b[s].gradient, gradient) >= 0) continue;
          b[s].gradient.push_back(handed_on{gradient, b[s].gradient_bytes});
          b[s].gradient_bytes += value_bytes(v);
        }
    return b;
  }();

  /// A fused kernel stores what is read outside of it.
  static constexpr auto used = [](auto...) {
    use_table<value_count, recomputed.ops == 0 ? 2 : 3, op_lists> t;
    auto& n = t.counts.items;
    t.operand_count[1] =
        n[1].count(backward.input_ops, gradient_sizes.input_ops) + gradient_sizes.values;
    t.operand_count[2] =
        n[1].count(backward.weight_ops, gradient_sizes.weight_ops) + M::graph.size.parameters;
    n[0] = n[1];
    if constexpr (recomputed.ops > 0) {
      n[2] = n[1];
      t.operand_count[3] = n[2].count(again.items, recomputed.ops) + M::graph.size.values;
      if (!recompute::keeps_last)  // forward need not store what backward will make again
        for (int v = 0; v < M::graph.size.values; ++v)
          if (recomputed.dropped[v]) n[0].of[v] = 0;
    }
    for (int s = 1; s < stages; ++s)  // the runtime hands these on
      for (int l = 0; l < 2; ++l) {
        for (handed_on const& x : boundaries[s].forward) ++n[l].of[x.what.index];
        for (handed_on const& x : boundaries[s].gradient) ++n[l].of[x.what.index];
      }
    t.operand_count[0] = n[0].count(M::graph.ops, M::graph.size.ops) + M::graph.size.values;
    return t;
  }();
  static constexpr auto const& uses(int list) {
    return used.counts[list == 0 ? 0 : list == 3 ? used.counts.size() - 1 : 1];
  }

  template <int List, int Ops>
  static constexpr auto fuse_list(op const* ops) {
    return fuse<Ops, used.operand_count[List]>(ops, uses(List), in_stage{});
  }
  static constexpr auto fused_forward = fuse_list<0, M::graph.size.ops>(M::graph.ops);
  static constexpr auto fused_input = fuse_list<1, gradient_sizes.input_ops>(backward.input_ops);
  static constexpr auto fused_weight = fuse_list<2, gradient_sizes.weight_ops>(backward.weight_ops);
  static constexpr auto fused_again = fuse_list<3, recomputed.ops>(again.items);

  static constexpr op const* ops(int list) {
    return list == 0   ? M::graph.ops
           : list == 1 ? backward.input_ops
           : list == 2 ? backward.weight_ops
                       : again.items;
  }
  static constexpr segment const& segment_at(int list, int i) {
    return list == 0   ? fused_forward.segments[i]
           : list == 1 ? fused_input.segments[i]
           : list == 2 ? fused_weight.segments[i]
                       : fused_again.segments[i];
  }
  static constexpr int segment_count(int list) {
    return int(list == 0   ? fused_forward.segments.size()
               : list == 1 ? fused_input.segments.size()
               : list == 2 ? fused_weight.segments.size()
                           : fused_again.segments.size());
  }
  static constexpr operand const& operand_at(int list, int i) {
    return list == 0   ? fused_forward.operands[i]
           : list == 1 ? fused_input.operands[i]
           : list == 2 ? fused_weight.operands[i]
                       : fused_again.operands[i];
  }
  static constexpr described_group describe(int list, int i) {
    segment const& s = segment_at(list, i);
    described_group d;
    d.shape = describe_group(ops(list), s.begin, s.end, uses(list), d.operands);
    return d;
  }

  /// Distinct kernel groups are numbered through the lists. What runs again is mostly a forward
  /// group, and then has its number.
  static constexpr int first_group[op_lists] = {
      0, int(fused_forward.distinct.size()),
      int(fused_forward.distinct.size() + fused_input.distinct.size()),
      int(fused_forward.distinct.size() + fused_input.distinct.size() +
          fused_weight.distinct.size())};
  static constexpr auto again_numbers = [](auto...) {
    list<int, int(fused_again.distinct.size()) + 1>
        number;  // and at the end, how many groups there are
    int next = first_group[3];
    for (int k = 0; k < int(fused_again.distinct.size()); ++k) {
      group const mine = describe(3, fused_again.distinct[k]).shape;
      int same = 0;
      while (same < first_group[1] && !(describe(0, fused_forward.distinct[same]).shape == mine))
        ++same;
      number[k] = same < first_group[1] ? same : next++;
    }
    number[int(fused_again.distinct.size())] = next;
    return number;
  }();
  static constexpr int groups = again_numbers[int(fused_again.distinct.size())];
  static constexpr int group_number(int list, int i) {
    int const g = segment_at(list, i).group;
    return list == 3 ? again_numbers[g] : first_group[list] + g;
  }
  /// The descriptions of the distinct groups, for the backend to instantiate.
  static constexpr auto shapes = [](auto...) {
    list<group, groups> all;
    for (int l = 0; l < op_lists; ++l)
      for (int i = 0, known = 0; i < segment_count(l); ++i)
        if (segment_at(l, i).group == known) {
          all[group_number(l, i)] = describe(l, i).shape;
          ++known;
        }
    return all;
  }();
  static constexpr group const& group_at(int g) { return shapes[g]; }
  /// Bit s is set: the group writes slot s.
  static constexpr auto written = [](auto...) {
    list<unsigned, groups> slots;
    for (int g = 0; g < groups; ++g)
      for_each_written(shapes[g], [&](int slot) {
        if (slot >= 0) slots[g] |= 1u << slot;
      });
    return slots;
  }();

  static constexpr auto ranges = [](auto...) {
    list<stage_range, stages> r;
    for (int s = 0; s < stages; ++s) {
      for (int k = 0; k < 2; ++k) {
        int const u = cuts[s + k];
        r[s].units[k] = u;
        r[s].values[k] = M::graph.first_value(u);
        r[s].parameters[k] = M::graph.first_parameter(u);
      }
    }
    // The backward lists run from the last stage to the first.
    int v = M::graph.size.values;
    for (int s = stages - 1; s >= 0; --s) {
      r[s].gradients[0] = v;
      while (v < value_count && stage_of_unit[backward.values[v - M::graph.size.values].unit] == s)
        ++v;
      r[s].gradients[1] = v;
    }
    for (int l = 0; l < op_lists; ++l) {
      int i = 0;
      for (int k = 0; k < stages; ++k) {
        int const s = l == 0 || l == 3 ? k : stages - 1 - k;
        r[s].segments[l][0] = i;
        while (i < segment_count(l) && stage_of_unit[ops(l)[segment_at(l, i).begin].unit] == s) ++i;
        r[s].segments[l][1] = i;
      }
    }
    return r;
  }();

  template <int S>
  static constexpr int local_values =
      ranges[S].values[1] - ranges[S].values[0] + ranges[S].gradients[1] - ranges[S].gradients[0];

  /// Position of value v in stage S's tables, or -1 if another stage makes it. Asked of every
  /// operand: the bounds are constants.
  template <int S>
  static constexpr int local(int v) {
    constexpr int first = ranges[S].values[0], end = ranges[S].values[1];
    constexpr int first_gradient = ranges[S].gradients[0], end_gradient = ranges[S].gradients[1];
    if (v < end) return v < first ? -1 : v - first;
    return v < first_gradient || v >= end_gradient ? -1 : v - first_gradient + (end - first);
  }

  /// Where stage s finds a value that another stage made.
  static constexpr address from_neighbour(int s, operand x) {
    if (int const i = find(boundaries[s].forward, x); i >= 0)
      return address{region::boundary_in, boundaries[s].forward[i].offset};
    if (int const i = find(boundaries[s + 1].gradient, x); i >= 0)
      return address{region::gradient_in, boundaries[s + 1].gradient[i].offset};
    return address{};
  }

  /// The programs and the memory of stage S: with everything kept, or with values dropped and made
  /// again.
  template <int S, bool Drops>
  using programs = stage_programs<compilation, S, Drops>;
};

}  // namespace pp
