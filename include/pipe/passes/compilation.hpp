// SPDX-License-Identifier: BSL-1.0
//
// The compiler inside the compiler, from a model to launches: each member is one pass, a constant with an evaluation budget
// of its own. Everything here is a value; the runtime and the backends read it.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/cost.hpp>
#include <pipe/graph/differentiate.hpp>
#include <pipe/passes/fuse.hpp>
#include <pipe/passes/memory.hpp>
#include <pipe/passes/partition.hpp>

namespace pp {

/// Cuts model M into `Stages` by partition policy `Cutter` and compiles every stage.
///
/// needs: 1 <= Stages <= units of M
/// SplitsBackward: the schedule runs B and W apart, so what B makes for W must outlive B
template <class M, int Stages, class Cutter, int Samples, int ElementBytes, bool SplitsBackward>
struct compilation {
  static constexpr int stages = Stages, samples = Samples, element_bytes = ElementBytes;
  static constexpr bool splits_backward = SplitsBackward;

  static constexpr auto const& forward = M::graph;
  static constexpr int units = M::graph.size.units;
  static constexpr gradient_size gradient_sizes = count_gradients(M::graph);
  static constexpr auto backward = differentiate<gradient_sizes>(M::graph);
  static constexpr int value_count = M::graph.size.values + gradient_sizes.values;

  /// Costs per unit and sample: forward, B, W.
  static constexpr auto costs = [] {
    list<list<cost, units>, 3> c;
    for (int i = 0; i < M::graph.size.ops; ++i) c[0][M::graph.ops[i].unit] += cost_of(M::graph.ops[i]);
    for (int i = 0; i < gradient_sizes.input_ops; ++i)
      c[1][backward.input_ops[i].unit] += cost_of(backward.input_ops[i]);
    for (int i = 0; i < gradient_sizes.weight_ops; ++i)
      c[2][backward.weight_ops[i].unit] += cost_of(backward.weight_ops[i]);
    return c;
  }();

  static constexpr auto cuts = [] {
    list<long, units> total;
    for (int u = 0; u < units; ++u)
      for (int k = 0; k < 3; ++k) total[u] += estimated_time(costs[k][u]);
    list<int, Stages + 1> c;
    Cutter::cut(total, units, Stages, c);
    return c;
  }();
  static constexpr auto stage_of_unit = [] {
    list<short, units> stage;
    for (int s = 0; s < Stages; ++s)
      for (int u = cuts[s]; u < cuts[s + 1]; ++u) stage[u] = short(s);
    return stage;
  }();

  static constexpr long value_bytes(int v) {
    long const elements =
        v < M::graph.size.values ? M::graph.values[v].elements : backward.values[v - M::graph.size.values].elements;
    return align_up(elements * Samples * ElementBytes);
  }

  /// The last unit that reads each forward value.
  static constexpr auto last_reader = [] {
    list<short, M::graph.size.values> reader;
    for (int i = 0; i < M::graph.size.ops; ++i)
      for (operand const& in : M::graph.ops[i].in)
        if (in.where == space::value) reader[in.index] = M::graph.ops[i].unit;
    return reader;
  }();
  /// Whether forward value v is made before unit u and read from there on: it crosses a cut there.
  static constexpr bool crosses(int v, int u) { return v < M::graph.first_value(u) && last_reader[v] >= u; }
  static constexpr int most_crossing = [] {
    int most = 0;
    for (int s = 1; s < Stages; ++s) {
      int n = 0;
      for (int v = 0; v < M::graph.first_value(cuts[s]); ++v) n += crosses(v, cuts[s]);
      if (n > most) most = n;
    }
    return most;
  }();
  /// The boundary before stage s: all values that cross the cut, and the gradients that come back for them.
  static constexpr auto boundaries = [] {
    list<boundary<most_crossing>, Stages + 1> b;
    for (int s = 1; s < Stages; ++s)
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

  static constexpr auto uses = [] {
    use_counts<value_count> n;
    n.count(M::graph.ops, M::graph.size.ops);
    n.count(backward.input_ops, gradient_sizes.input_ops);
    n.count(backward.weight_ops, gradient_sizes.weight_ops);
    for (int s = 1; s < Stages; ++s) {  // the runtime hands these on
      for (handed_on const& x : boundaries[s].forward) n.add(x.what);
      for (handed_on const& x : boundaries[s].gradient) n.add(x.what);
    }
    return n;
  }();

  struct in_stage {
    constexpr int operator()(int unit) const { return stage_of_unit[unit]; }
  };
  static constexpr auto fused_forward = fuse<M::graph.size.ops>(M::graph.ops, uses, in_stage{});
  static constexpr auto fused_input = fuse<gradient_sizes.input_ops>(backward.input_ops, uses, in_stage{});
  static constexpr auto fused_weight = fuse<gradient_sizes.weight_ops>(backward.weight_ops, uses, in_stage{});

  /// Distinct kernel groups are numbered through the three lists.
  static constexpr int first_group[4] = {
      0, int(fused_forward.distinct.size()), int(fused_forward.distinct.size() + fused_input.distinct.size()),
      int(fused_forward.distinct.size() + fused_input.distinct.size() + fused_weight.distinct.size())};
  static constexpr int groups = first_group[3];

  static constexpr op const* ops(int list) {
    return list == 0 ? M::graph.ops : list == 1 ? backward.input_ops : backward.weight_ops;
  }
  static constexpr segment const& segment_at(int list, int i) {
    return list == 0 ? fused_forward.segments[i] : list == 1 ? fused_input.segments[i] : fused_weight.segments[i];
  }
  static constexpr int segment_count(int list) {
    return int(list == 0   ? fused_forward.segments.size()
               : list == 1 ? fused_input.segments.size()
                           : fused_weight.segments.size());
  }
  static constexpr described_group describe(int list, int i) {
    segment const& s = segment_at(list, i);
    return describe_group(ops(list), s.begin, s.end, uses);
  }
  /// The description of distinct group g, for the backend to instantiate.
  static constexpr group group_at(int g) {
    int const list = g < first_group[1] ? 0 : g < first_group[2] ? 1 : 2;
    auto const& distinct = list == 0   ? fused_forward.distinct.items
                           : list == 1 ? fused_input.distinct.items
                                       : fused_weight.distinct.items;
    return describe(list, distinct[g - first_group[list]]).shape;
  }

  static constexpr auto ranges = [] {
    list<stage_range, Stages> r;
    for (int s = 0; s < Stages; ++s) {
      for (int k = 0; k < 2; ++k) {
        int const u = cuts[s + k];
        r[s].units[k] = u;
        r[s].values[k] = M::graph.first_value(u);
        r[s].parameters[k] = M::graph.first_parameter(u);
      }
    }
    // The backward lists run from the last stage to the first.
    int v = M::graph.size.values;
    for (int s = Stages - 1; s >= 0; --s) {
      r[s].gradients[0] = v;
      while (v < value_count && stage_of_unit[backward.values[v - M::graph.size.values].unit] == s) ++v;
      r[s].gradients[1] = v;
    }
    for (int l = 0; l < 3; ++l) {
      int i = 0;
      for (int k = 0; k < Stages; ++k) {
        int const s = l == 0 ? k : Stages - 1 - k;
        r[s].segments[l][0] = i;
        while (i < segment_count(l) && stage_of_unit[ops(l)[segment_at(l, i).begin].unit] == s) ++i;
        r[s].segments[l][1] = i;
      }
    }
    return r;
  }();

  static constexpr int program_length(int s, program p) {
    auto const length = [&](int l) { return ranges[s].segments[l][1] - ranges[s].segments[l][0]; };
    return p == program::backward ? length(1) + length(2) : length(int(p));
  }

  /// The order in which stage S's segments run in program P.
  template <int S, program P>
  static constexpr auto order = [] {
    list<scheduled_segment, program_length(S, P)> o;
    int n = 0;
    if constexpr (P != program::backward) {
      for (int i = ranges[S].segments[int(P)][0]; i < ranges[S].segments[int(P)][1]; ++i)
        o[n++] = scheduled_segment{P, i};
    } else {
      int w = ranges[S].segments[2][0];
      auto const ready = [&](int origin) {  // weight segments whose gradient is complete before forward op `origin`
        while (w < ranges[S].segments[2][1] && backward.weight_ops[fused_weight.segments[w].end - 1].origin >= origin)
          o[n++] = scheduled_segment{program::backward_weight, w++};
      };
      for (int b = ranges[S].segments[1][0]; b < ranges[S].segments[1][1]; ++b) {
        ready(backward.input_ops[fused_input.segments[b].begin].origin);
        o[n++] = scheduled_segment{program::backward_input, b};
      }
      ready(-1);
    }
    return o;
  }();

  template <int S>
  static constexpr int local_values =
      ranges[S].values[1] - ranges[S].values[0] + ranges[S].gradients[1] - ranges[S].gradients[0];

  /// Position of value v in stage S's tables, or -1 if another stage makes it.
  template <int S>
  static constexpr int local(int v) {
    stage_range const& r = ranges[S];
    if (v >= r.values[0] && v < r.values[1]) return v - r.values[0];
    if (v >= r.gradients[0] && v < r.gradients[1]) return v - r.gradients[0] + r.values[1] - r.values[0];
    return -1;
  }

  /// Where stage s finds a value that another stage made.
  static constexpr address from_neighbour(int s, operand x) {
    if (int const i = find(boundaries[s].forward, x); i >= 0)
      return address{region::boundary_in, boundaries[s].forward[i].offset};
    if (int const i = find(boundaries[s + 1].gradient, x); i >= 0)
      return address{region::gradient_in, boundaries[s + 1].gradient[i].offset};
    return address{};
  }

  template <int S>
  static constexpr auto layout = memory_pass<compilation, S>{}.run();

  /// Where stage S finds operand x.
  template <int S>
  static constexpr address resolve(operand x) {
    switch (x.where) {
      case space::none: return address{};
      case space::input: return address{input_region(x.index), 0};
      case space::label: return address{region::label, 0};
      case space::parameter:
        return address{region::parameters, layout<S>.parameters[x.index - ranges[S].parameters[0]]};
      case space::parameter_gradient:
        return address{region::parameter_gradients, layout<S>.parameters[x.index - ranges[S].parameters[0]]};
      case space::parameter_transposed:
        return address{region::transposed, layout<S>.transposed[x.index - ranges[S].parameters[0]]};
      case space::value: break;
    }
    if (int const v = local<S>(x.index); v >= 0) return layout<S>.values[v];
    return from_neighbour(S, x);
  }

  /// The launches of program P of stage S, with every operand resolved to an address.
  template <int Launches, int Operands>
  struct resolved {
    static constexpr int launches = Launches;
    list<launch, Launches> items;
    list<address, Operands> operands;
  };
  template <int S, program P>
  static constexpr int operand_total = [] {
    int n = 0;
    for (int i = 0; i < order<S, P>.size(); ++i)
      n += segment_at(int(order<S, P>[i].list), order<S, P>[i].index).operands;
    return n;
  }();
  template <int S, program P>
  static constexpr auto launches = [] {
    resolved<order<S, P>.size(), operand_total<S, P>> r;
    int n = 0;
    for (int i = 0; i < order<S, P>.size(); ++i) {
      scheduled_segment const& s = order<S, P>[i];
      operands const with = describe(int(s.list), s.index).operands;
      r.items[i] = launch{first_group[int(s.list)] + segment_at(int(s.list), s.index).group, n, int(with.size())};
      for (operand const& x : with) r.operands[n++] = compilation::template resolve<S>(x);
    }
    return r;
  }();
};

}  // namespace pp
