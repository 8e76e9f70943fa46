// SPDX-License-Identifier: BSL-1.0
//
// Lays out the memory of one stage: every value that reaches memory gets a region and an offset.
// What forward keeps for backward goes into a record, one per micro-batch in flight; what lives
// only inside one program run shares scratch with values that live at other times.
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
    long offset = 0;
    int at = 0;  // where the new block comes
    for (int i = 0; i < int(live.count); ++i) {
      if (live.items[i].last_use < now) continue;
      if (at == kept && live.items[i].offset < offset + bytes) {
        offset = live.items[i].end;
        ++at;
      }
      if (kept < i) live.items[kept] = live.items[i];
      ++kept;
    }
    live.count = std::size_t(kept + 1);
    for (int i = kept; i > at; --i) live.items[i] = live.items[i - 1];
    live.items[at] = block{offset, offset + bytes, last_use};
    if (offset + bytes > peak) peak = offset + bytes;
    return offset;
  }
};

/// The programs of a stage, each a list of segments: forward; B; W; and B with W, each W as soon as
/// it can run.
enum class program : unsigned char { forward, backward_input, backward_weight, backward };
inline constexpr int program_count = 4;

/// A segment in a program: of which list of ops (see compilation::op_lists), and where in that
/// list's segments.
struct scheduled_segment {
  int list = 0, index = 0;
};

/// Ranges of one stage in the model's lists.
struct stage_range {
  int units[2]{}, values[2]{}, gradients[2]{}, parameters[2]{};
  int segments[4][2]{};  // by list
};

/// How many bytes each region of a stage needs: of `record` and `pending` and the boundaries, one
/// of them.
struct stage_bytes {
  long parameters = 0, trained = 0, transposed = 0;  // the trained parameters come first
  long record = 0, pending = 0, scratch = 0, boundary = 0, gradient = 0;
};

template <int Values, int Parameters, int Crossing>
struct stage_layout {
  stage_bytes bytes;
  address values[Values + 1];  // as forward finds them: forward values, then gradients, from the
                               // stage's first
  address again[Values + 1];   // as backward finds them
  long parameters[Parameters + 1]{};  // offset of each parameter and of its gradient
  int by_offset[Parameters + 1]{};    // parameters in the order in which they lie
  long transposed[Parameters + 1]{};  // offset of the transposed copy, where there is one
  bool rereads_result = false;        // backward reads something that left the stage
  bool rereads_gradient = false;      // W reads a gradient that left the stage
  static_vector<copied, Crossing> passed_values,
      passed_gradients;  // what leaves without being made on the way
};

/// Memory of stage S of compilation C with programs P. First it notes where each value first and
/// last occurs in each program, then it gives out room.
template <class P, class C, int S>
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

  template <program Which>
  constexpr void note() {
    auto const& order = P::template order<Which>;
    for (int i = 0; i < order.size(); ++i) {
      scheduled_segment const at = order[i];
      segment const s = C::segment_at(at.list, at.index);
      for (int k = s.first; k < s.first + s.operands; ++k) {
        operand const x = C::operand_at(at.list, k);
        if (x.where != space::value) continue;
        int const v = C::template local<S>(x.index);
        if (v < 0) continue;
        occurrence& o = seen[int(Which)][v];
        if (o.first < 0) o.first = i;
        o.last = i;
      }
    }
  }
  constexpr occurrence const& in_forward(int at) const { return seen[int(program::forward)][at]; }
  constexpr occurrence const& in_backward(int at) const {
    return seen[int(C::splits_backward ? program::backward_input : program::backward)][at];
  }
  constexpr bool in_weights(int at) const {
    return C::splits_backward && seen[int(program::backward_weight)][at].any();
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

  static constexpr parameter const& parameter_at(int i) {
    return g.parameters[range.parameters[0] + i];
  }
  static constexpr bool trained_alike(parameter const& a, parameter const& b) {
    return a.trained == b.trained && a.rate_scale == b.rate_scale && a.decay_scale == b.decay_scale;
  }
  /// 0: the optimizer's; 1: shared with an earlier place, which the optimizer updates; 2: not
  /// trained.
  static constexpr int order_of(parameter const& p) {
    return !p.trained ? 2 : p.tied_to >= 0 ? 1 : 0;
  }

  /// Parameters that are trained alike lie together, so that an update is a few runs over flat
  /// memory; those that are not trained come last: gradients are as long as what is before them.
  static constexpr void lay_out_parameters(result& out) {
    constexpr int placed = 3;
    int turn[parameters + 1]{};
    for (int i = 0; i < parameters; ++i) turn[i] = order_of(parameter_at(i));
    int count = 0;
    for (int order = 0; order < placed; ++order) {
      for (int first = 0; first < parameters; ++first) {
        if (turn[first] != order) continue;
        for (int i = first; i < parameters; ++i) {
          if (turn[i] != order) continue;
          if (order == 0 && !trained_alike(parameter_at(i), parameter_at(first))) continue;
          turn[i] = placed;
          out.by_offset[count++] = i;
          out.parameters[i] = out.bytes.parameters;
          out.bytes.parameters += align_up(parameter_at(i).elements() * C::widths.element);
        }
      }
      if (order < 2) out.bytes.trained = out.bytes.parameters;
    }
    for (int i = 0; i < parameters; ++i)
      if (C::backward.transposed[range.parameters[0] + i]) {
        out.transposed[i] = out.bytes.transposed;
        out.bytes.transposed +=
            align_up(g.parameters[range.parameters[0] + i].elements() * C::widths.value);
      }
  }

  /// The gradient of the loss overwrites the logits where nothing else reads them: both have one
  /// place.
  static constexpr int overwritten_logits(int list) {
    op const& loss = g.loss();
    bool const alone = S == C::stages - 1 && C::uses(list).of[loss.in[0].index] == 1;
    return alone ? C::template local<S>(loss.in[0].index) : -1;
  }

  constexpr void lay_out_values(result& out) {
    auto const &entered = C::boundaries[S], &left = C::boundaries[S + 1];
    scratch_room<2 * values + 1> forward_room, backward_room;
    out.bytes.boundary = left.forward_bytes;
    out.bytes.gradient = entered.gradient_bytes;
    int const loss_gradient = S == C::stages - 1 ? C::template local<S>(g.loss().out[0].index) : -1;
    int const logits = overwritten_logits(0), logits_again = overwritten_logits(P::drops ? 3 : 0);
    auto const share = [&](program p, int from,
                           int to) {  // a value lives as long as the one that takes its place
      occurrence &a = seen[int(p)][from], &b = seen[int(p)][to];
      if (a.any() && b.any() && b.last > a.last) a.last = b.last;
    };
    constexpr program backward = C::splits_backward ? program::backward_input : program::backward;
    if (loss_gradient >= 0 && find(entered.gradient, g.loss().out[0]) >= 0 &&
        in_backward(loss_gradient).any())
      seen[int(backward)][loss_gradient].last =
          P::template order<backward>.size();  // handed on when all has run
    if (logits >= 0) share(program::forward, logits, loss_gradient);
    if (logits_again >= 0) share(backward, logits_again, loss_gradient);

    auto const record = [&](int v) {
      address const a{region::record, out.bytes.record};
      out.bytes.record += C::value_bytes(v);
      return a;
    };
    auto const pending = [&](int v) {
      address const a{region::pending, out.bytes.pending};
      out.bytes.pending += C::value_bytes(v);
      return a;
    };
    auto const scratch = [&](auto& room, occurrence const& o, int v) {
      return o.any() ? address{region::scratch, room.allocate(C::value_bytes(v), o.first, o.last)}
                     : address{};
    };
    for (int v = range.values[0]; v < range.values[1]; ++v) {
      int const at = v - range.values[0];
      bool const gradient_of_loss = at == loss_gradient;
      bool const for_backward = in_backward(at).any() || in_weights(at) || gradient_of_loss ||
                                (at == logits && P::keeps(g.loss().out[0].index));
      bool const kept = for_backward && P::keeps(v);
      int const leaves = find(left.forward, value_operand(v));
      if (leaves >= 0) {
        out.rereads_result = out.rereads_result || kept;
        out.values[at] = address{region::boundary_out, left.forward[leaves].offset};
      } else if (gradient_of_loss && logits >= 0) {
        out.values[at] = out.values[logits];
      } else {
        out.values[at] = kept ? record(v) : scratch(forward_room, in_forward(at), v);
      }
      if (kept)
        out.again[at] = out.values[at];
      else if (gradient_of_loss && logits_again >= 0)
        out.again[at] = out.again[logits_again];
      else
        out.again[at] = in_weights(at) || (at == logits_again && in_weights(loss_gradient))
                            ? pending(v)
                            : scratch(backward_room, in_backward(at), v);
    }
    for (int v = range.gradients[0]; v < range.gradients[1]; ++v) {
      int const at = v - range.gradients[0] + range.values[1] - range.values[0];
      if (int const i = find(entered.gradient, value_operand(v)); i >= 0) {
        out.rereads_gradient = out.rereads_gradient || in_weights(at);
        out.again[at] = address{region::gradient_out, entered.gradient[i].offset};
      } else {
        out.again[at] = in_weights(at) ? pending(v) : scratch(backward_room, in_backward(at), v);
      }
    }
    out.bytes.scratch =
        forward_room.peak > backward_room.peak ? forward_room.peak : backward_room.peak;

    for (handed_on const& x : left.forward)
      if (C::template local<S>(x.what.index) < 0)
        out.passed_values.push_back(copied{C::from_neighbour(S, x.what),
                                           {region::boundary_out, x.offset},
                                           C::value_bytes(x.what.index)});
    for (handed_on const& x : entered.gradient) {
      int const v = C::template local<S>(x.what.index);  // the loss makes a gradient in forward
      address const to{region::gradient_out, x.offset};
      if (v < 0)
        out.passed_gradients.push_back(
            copied{C::from_neighbour(S, x.what), to, C::value_bytes(x.what.index)});
      else if (x.what.index < g.size.values)
        out.passed_gradients.push_back(copied{out.again[v], to, C::value_bytes(x.what.index)});
    }
  }
};

}  // namespace pp
