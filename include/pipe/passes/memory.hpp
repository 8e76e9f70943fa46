// SPDX-License-Identifier: BSL-1.0
//
// Lays out the memory of one stage: every value that reaches memory gets a region and an offset. What forward keeps for
// backward goes into a record, one per micro-batch in flight; what lives only inside one program run shares scratch with
// values that live at other times.
#pragma once

#include <initializer_list>

#include <pipe/base/bytes.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/static_vector.hpp>
#include <pipe/graph/differentiate.hpp>
#include <pipe/passes/address.hpp>
#include <pipe/passes/boundary.hpp>
#include <pipe/passes/fuse.hpp>

namespace pp {

/// Gives out offsets for values with known lifetimes, lowest first. `peak` is the room needed.
///
/// law: two allocations that are live at the same time do not overlap
template <int Capacity>
struct scratch_room {
  struct block {
    long offset, end;
    int last_use;
  };
  static_vector<block, Capacity> live;  // by offset
  long peak = 0;

  constexpr long allocate(long bytes, int now, int last_use) {
    int kept = 0;
    for (int i = 0; i < int(live.size()); ++i)
      if (live[i].last_use >= now) live[kept++] = live[i];
    live.count = std::size_t(kept);
    long offset = 0;
    int at = 0;
    while (at < kept && live[at].offset < offset + bytes) offset = live[at++].end;
    live.push_back(block{});
    for (int i = kept; i > at; --i) live[i] = live[i - 1];
    live[at] = block{offset, offset + bytes, last_use};
    if (offset + bytes > peak) peak = offset + bytes;
    return offset;
  }
};

/// The programs of a stage, each a list of segments: forward; B; W; and B with W, each W as soon as it can run.
enum class program : unsigned char { forward, backward_input, backward_weight, backward };
inline constexpr int program_count = 4;

/// A segment in a program: of which list of ops, and where in that list's segments.
struct scheduled_segment {
  program list = program::forward;  // forward, backward_input or backward_weight
  int index = 0;
};

/// Ranges of one stage in the model's lists.
struct stage_range {
  int units[2]{}, values[2]{}, gradients[2]{}, parameters[2]{};
  int segments[3][2]{};  // by list
};

/// How many bytes each region of a stage needs: of `record` and `pending` and the boundaries, one of them.
struct stage_bytes {
  long parameters = 0, decayed_parameters = 0, updated_parameters = 0, transposed = 0;
  long record = 0, pending = 0, scratch = 0, boundary = 0, gradient = 0;
};

template <int Values, int Parameters, int Crossing>
struct stage_layout {
  stage_bytes bytes;
  address values[Values + 1];         // forward values, then gradients, from the stage's first
  long parameters[Parameters + 1]{};  // offset of each parameter and of its gradient
  long transposed[Parameters + 1]{};  // offset of the transposed copy, where there is one
  bool rereads_result = false;        // backward reads something that left the stage
  bool rereads_gradient = false;      // W reads a gradient that left the stage
  static_vector<copied, Crossing> passed_values, passed_gradients;  // what leaves without being made on the way
};

/// Memory of stage S of compilation C. First it notes where each value first and last occurs in each program, then it
/// gives out room.
template <class C, int S>
struct memory_pass {
  static constexpr auto const& g = C::forward;
  static constexpr stage_range range = C::ranges[S];
  static constexpr int values = C::template local_values<S>;
  static constexpr int parameters = range.parameters[1] - range.parameters[0];

  struct occurrence {
    int first = -1, last = -1;
    constexpr bool any() const { return first >= 0; }
  };
  list<list<occurrence, values>, program_count> seen{};

  template <program P>
  constexpr void note() {
    for (int i = 0; i < C::template order<S, P>.size(); ++i)
      for (operand const& x :
           C::describe(int(C::template order<S, P>[i].list), C::template order<S, P>[i].index).operands)
        if (int const v = x.where == space::value ? C::template local<S>(x.index) : -1; v >= 0) {
          occurrence& o = seen[int(P)][v];
          if (!o.any()) o.first = i;
          o.last = i;
        }
  }

  using result = stage_layout<values, parameters, C::most_crossing>;

  constexpr result run() {
    note<program::forward>();
    if constexpr (C::splits_backward) {
      note<program::backward_input>();
      note<program::backward_weight>();
    } else {
      note<program::backward>();
    }
    result out;
    lay_out_parameters(out);
    lay_out_values(out);
    return out;
  }

  /// Parameters that decay come first, those shared with an earlier layer last: they have a gradient of their own, but no
  /// optimizer state.
  static constexpr void lay_out_parameters(result& out) {
    auto const take = [&](bool tied, bool decays) {
      for (int i = 0; i < parameters; ++i) {
        parameter const& p = g.parameters[range.parameters[0] + i];
        if ((p.tied_to >= 0) != tied || p.decays != decays) continue;
        out.parameters[i] = out.bytes.parameters;
        out.bytes.parameters += align_up(p.elements() * C::element_bytes);
      }
    };
    take(false, true);
    out.bytes.decayed_parameters = out.bytes.parameters;
    take(false, false);
    out.bytes.updated_parameters = out.bytes.parameters;
    take(true, false);
    for (int i = 0; i < parameters; ++i)
      if (C::backward.transposed[range.parameters[0] + i]) {
        out.transposed[i] = out.bytes.transposed;
        out.bytes.transposed += align_up(g.parameters[range.parameters[0] + i].elements() * C::element_bytes);
      }
  }

  constexpr void lay_out_values(result& out) const {
    auto const &entered = C::boundaries[S], &left = C::boundaries[S + 1];
    op const& loss = g.loss();
    bool const has_loss = S == C::stages - 1;
    scratch_room<values + 1> in_forward, in_backward;
    out.bytes.boundary = left.forward_bytes;
    out.bytes.gradient = entered.gradient_bytes;

    auto const forward_value = [&](int v, int at) -> address {
      occurrence const& f = seen[int(program::forward)][at];
      bool kept = has_loss && (v == loss.in[0].index || v == loss.out[0].index);
      for (int p = 1; p < program_count; ++p) kept = kept || seen[p][at].any();
      if (int const i = find(left.forward, value_operand(v)); i >= 0) {
        out.rereads_result = out.rereads_result || kept;
        return address{region::boundary_out, left.forward[i].offset};
      }
      int const logits = has_loss && v == loss.out[0].index ? C::template local<S>(loss.in[0].index) : -1;
      if (logits >= 0 && C::uses.of[loss.in[0].index] == 1) return out.values[logits];  // overwritten by its gradient
      if (kept) {
        address const a{region::record, out.bytes.record};
        out.bytes.record += C::value_bytes(v);
        return a;
      }
      if (!f.any()) return address{};
      return address{region::scratch, in_forward.allocate(C::value_bytes(v), f.first, f.last)};
    };
    auto const gradient_value = [&](int v, int at) -> address {
      if (int const i = find(entered.gradient, value_operand(v)); i >= 0) {
        out.rereads_gradient =
            out.rereads_gradient || (C::splits_backward && seen[int(program::backward_weight)][at].any());
        return address{region::gradient_out, entered.gradient[i].offset};
      }
      if (C::splits_backward && seen[int(program::backward_weight)][at].any()) {
        address const a{region::pending, out.bytes.pending};
        out.bytes.pending += C::value_bytes(v);
        return a;
      }
      occurrence const& b = seen[int(C::splits_backward ? program::backward_input : program::backward)][at];
      if (!b.any()) return address{};
      return address{region::scratch, in_backward.allocate(C::value_bytes(v), b.first, b.last)};
    };
    for (int v = range.values[0]; v < range.values[1]; ++v)
      out.values[C::template local<S>(v)] = forward_value(v, C::template local<S>(v));
    for (int v = range.gradients[0]; v < range.gradients[1]; ++v)
      out.values[C::template local<S>(v)] = gradient_value(v, C::template local<S>(v));
    out.bytes.scratch = in_forward.peak > in_backward.peak ? in_forward.peak : in_backward.peak;

    for (handed_on const& x : left.forward)
      if (C::template local<S>(x.what.index) < 0)
        out.passed_values.push_back(
            copied{C::from_neighbour(S, x.what), {region::boundary_out, x.offset}, C::value_bytes(x.what.index)});
    for (handed_on const& x : entered.gradient) {
      int const v = C::template local<S>(x.what.index);  // the loss makes a gradient in forward
      address const to{region::gradient_out, x.offset};
      if (v < 0)
        out.passed_gradients.push_back(copied{C::from_neighbour(S, x.what), to, C::value_bytes(x.what.index)});
      else if (x.what.index < g.size.values)
        out.passed_gradients.push_back(copied{out.values[v], to, C::value_bytes(x.what.index)});
    }
  }
};

}  // namespace pp
