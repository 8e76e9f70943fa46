// SPDX-License-Identifier: BSL-1.0
//
// One stage, ready to run: the order of its kernels in each program, where every operand is, and
// how much memory that takes. Under a policy that recomputes, a backward program begins with what
// has to be made again.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/passes/address.hpp>
#include <pipe/passes/memory.hpp>

namespace pp {

/// Stage S of compilation C. Drops: values that the recompute policy drops are not kept but made
/// again; otherwise all are kept.
template <class C, int S, bool Drops>
struct stage_programs {
  static constexpr stage_range range = C::ranges[S];
  static constexpr bool splits_backward = C::splits_backward, drops = Drops;

  /// Which program runs the dropped values again.
  static constexpr bool runs_again(program p) {
    return Drops && (p == program::backward || p == program::backward_input);
  }
  static constexpr int segment_count(int list) {
    return range.segments[list][1] - range.segments[list][0];
  }
  static constexpr int length(program p) {
    int const own =
        p == program::backward ? segment_count(1) + segment_count(2) : segment_count(int(p));
    return own + (runs_again(p) ? segment_count(3) : 0);
  }

  /// The order in which the stage's segments run in program P.
  template <program P>
  static constexpr auto order = [](auto...) {
    list<scheduled_segment, length(P)> o;
    int n = 0;
    auto const take = [&](int list) {
      for (int i = range.segments[list][0]; i < range.segments[list][1]; ++i)
        o[n++] = scheduled_segment{list, i};
    };
    if constexpr (runs_again(P)) take(3);
    if constexpr (P != program::backward) {
      take(int(P));
    } else {
      int w = range.segments[2][0];
      auto const ready = [&](int origin) {  // weight segments whose gradient is complete before
                                            // forward op `origin`
        while (w < range.segments[2][1] &&
               C::backward.weight_ops[C::segment_at(2, w).end - 1].origin >= origin)
          o[n++] = scheduled_segment{2, w++};
      };
      for (int b = range.segments[1][0]; b < range.segments[1][1]; ++b) {
        ready(C::backward.input_ops[C::segment_at(1, b).begin].origin);
        o[n++] = scheduled_segment{1, b};
      }
      ready(-1);
    }
    return o;
  }();

  /// Whether forward value v of this stage is kept for backward, not made again.
  static constexpr bool keeps(int v) { return !Drops || !C::recomputed.dropped[v]; }

  static constexpr auto layout = memory_pass<stage_programs, C, S>{}.run();

  /// What a kernel reads of a parameter. Angles of rotations are not shortened.
  static constexpr address resolve_parameter(int index) {
    long const at = layout.parameters[index - range.parameters[0]];
    if (!C::has_copies || C::forward.parameters[index].initial.kind == distribution::rotary)
      return address{region::parameters, at};
    return address{region::copies, at / C::widths.element * C::widths.value};
  }
  /// Where program P finds operand x.
  template <program P>
  static constexpr address resolve(operand x) {
    switch (x.where) {
      case space::none: return address{};
      case space::input: return address{input_region(x.index), 0};
      case space::label: return address{region::label, 0};
      case space::parameter: return resolve_parameter(x.index);
      case space::parameter_gradient:
        return address{region::parameter_gradients,
                       layout.parameters[x.index - range.parameters[0]]};
      case space::parameter_transposed:
        return address{region::transposed, layout.transposed[x.index - range.parameters[0]]};
      case space::random: return address{region::random, x.index * long(sizeof(int))};
      case space::value: break;
    }
    if (int const v = C::template local<S>(x.index); v >= 0)
      return P == program::forward ? layout.values[v] : layout.again[v];
    return C::from_neighbour(S, x);
  }

  /// The launches of program P, with every operand resolved to an address.
  template <int Launches, int Operands>
  struct resolved {
    static constexpr int launches = Launches;
    list<launch, Launches> items;
    list<placed_operand, Operands> operands;
  };
  static constexpr long elements(operand const& x) {
    return x.where == space::value ? C::value_elements(x.index) * C::samples
                                   : C::forward.parameters[x.index].elements();
  }
  template <program P>
  static constexpr int operand_total = [](auto...) {
    int n = 0;
    for (scheduled_segment const& s : order<P>) n += C::segment_at(s.list, s.index).operands;
    return n;
  }();
  template <program P>
  static constexpr auto launches = [](auto...) {
    resolved<order<P>.size(), operand_total<P>> r;
    int n = 0;
    for (int i = 0; i < order<P>.size(); ++i) {
      scheduled_segment const s = order<P>[i];
      segment const with = C::segment_at(s.list, s.index);
      int const g = C::group_number(s.list, s.index);
      r.items[i] = launch{g, n, with.operands, C::ops(s.list)[with.begin].unit, s.list == 3};
      for (int k = 0; k < with.operands; ++k, ++n) {
        operand const x = C::operand_at(s.list, with.first + k);
        r.operands[n].at = stage_programs::template resolve<P>(x);
        if (C::written[g] >> k & 1) r.operands[n].elements = elements(x);
        r.operands[n].is_wide = x.where != space::value || C::is_wide(x.index);
      }
    }
    return r;
  }();
};

}  // namespace pp
