// SPDX-License-Identifier: BSL-1.0
//
// The memory layout of one stage: a region and an offset for every value that reaches memory.
// Values that forward stores for backward are in a record, one per micro-batch in flight. Values
// that live only inside of one program run are in scratch, which values of other lifetimes share.
// Values that B stores for W, or R for B and W, are in a pending record, one per micro-batch
// between these actions.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/passes/chains.hpp>

namespace pp::detail {

/// A block of scratch memory in use, in bytes; `last_use` is a position in the program.
struct scratch_block {
  long offset, end;
  int last_use;
};

/// A first-fit allocator of offsets for values with known lifetimes. `peak` is the memory needed.
///
/// shape: live[n + 1] for n values that are live at a time
/// needs: calls in the order of `now`
/// law:   two allocations that are live at the same time do not overlap
struct scratch_allocator {
  scratch_block* live;  // in the order of offsets
  int count = 0;
  long peak = 0;

  /// The offset of a block that is live from `now` to `last_use`: the lowest gap that is large
  /// enough among the blocks still live.
  constexpr long allocate(long bytes, int now, int last_use) {
    int kept = 0;
    long offset = 0;
    int at = 0;  // the index of the new block
    for (int i = 0; i < count; ++i) {
      if (live[i].last_use < now) continue;
      if (at == kept && live[i].offset < offset + bytes) {
        offset = live[i].end;
        ++at;
      }
      if (kept < i) live[kept] = live[i];
      ++kept;
    }
    count = kept + 1;
    for (int i = kept; i > at; --i) live[i] = live[i - 1];
    live[at] = scratch_block{offset, offset + bytes, last_use};
    if (offset + bytes > peak) peak = offset + bytes;
    return offset;
  }
};

/// Bytes of the regions of a stage; for records, pending records and boundaries, bytes of one of
/// them.
struct stage_bytes {
  long parameters = 0, trained = 0, transposed = 0;  // the trained parameters come first
  long divided = 0, divided_transposed = 0;  // of these: parameters that replicas may divide
  long buffers = 0, sums = 0;                // sums: of buffers that steps write, which come first
  long record = 0, pending = 0, scratch = 0, boundary = 0, gradient = 0;
};

/// The memory for the result of laying out a stage, by value or by parameter of the stage; items
/// are initially default.
struct layout_sinks {
  address *values = nullptr, *recomputed = nullptr;
  long* parameters = nullptr;
  int* by_offset = nullptr;
  long* transposed = nullptr;
  sink<copied> passed_values, passed_gradients;
};

/// The sizes of a layout, and whether values are read after they have left the stage: the slots of
/// such values must stay until they have been read.
struct layout_totals {
  stage_bytes bytes;
  bool rereads_result = false;    // backward reads a value that has left the stage
  bool rereads_gradient = false;  // W reads a gradient that has left the stage
  unsigned inputs_read = 0;       // bit i: a program reads input i
  bool reads_labels = false;
};

/// The first and the last segment of a program that touches a value.
struct occurrence {
  int first = -1, last = -1;
  constexpr bool any() const { return first >= 0; }
};

/// Working memory of laying out.
///
/// shape: seen[programs that run][values of the stage], initially default; forward_blocks,
///        backward_blocks: [values of the stage + 1]
struct layout_scratch {
  occurrence* seen[program_count]{};
  scratch_block *forward_blocks = nullptr, *backward_blocks = nullptr;
  bool const* in_memory = nullptr;  // by value, see note_in_memory; null: all values are in memory
  /// By value: whether forward has the value in memory in evaluation; null: the same as in
  /// training.
  bool const* in_evaluation = nullptr;
};

/// The most elements of a parameter that replicas do not divide, since messages for its parts would
/// cost more than the memory that is saved is worth.
inline constexpr long most_undivided_elements = 1L << 15;

/// Lays out a stage's parameters. Parameters with equal training settings are contiguous, so that
/// an update has few ranges of flat memory; parameters that are not trained come last, so that the
/// region of gradients has only the length of the trained part. If replicas divide parameters,
/// trained parameters that are large and not shared come first, in the order of the model. Buffers
/// have a region of their own, in which buffers that steps write come first.
///
/// shape: order_of[parameters of the stage]: working memory
constexpr void lay_out_parameters(compiled_model const& m, stage_range const& r, char* order_of,
                                  layout_sinks& out, stage_bytes& bytes) {
  constexpr char not_trained = 2, committed = 3, constant_buffer = 4, placed = 5, divided = 6;
  int const count = r.parameters.size();
  parameter const* const p = m.parameters.items + r.parameters.begin;
  auto const trained_alike = [](parameter const& a, parameter const& b) {
    return a.trained == b.trained && a.rate_scale == b.rate_scale && a.decay_scale == b.decay_scale;
  };
  // 0: updated by the optimizer; 1: a later place of a shared parameter, whose first place is
  // updated.
  for (int i = 0; i < count; ++i)
    order_of[i] = p[i].is_committed() ? committed
                  : p[i].is_buffer    ? constant_buffer
                  : !p[i].trained     ? not_trained
                                      : char(p[i].tied_to >= 0 ? 1 : 0);
  bool some[placed]{};
  for (int i = 0; i < count; ++i) some[int(order_of[i])] = true;
  int n = 0;
  auto const place = [&](int i, long& end) {
    order_of[i] = placed;
    out.by_offset[n++] = i;
    out.parameters[i] = end;
    end += align_up(p[i].elements() * m.values.widths.element);
  };
  if (m.values.widths.divides) {
    for (int i = 0; i < count; ++i)
      if (order_of[i] == 0 && p[i].elements() > most_undivided_elements) order_of[i] = divided;
    for (parameter const& other : m.parameters)
      if (r.parameters.contains(other.tied_to))
        if (char& owner = order_of[other.tied_to - r.parameters.begin]; owner == divided) owner = 0;
    for (int i = 0; i < count; ++i)
      if (order_of[i] == divided) place(i, bytes.parameters);
  }
  bytes.divided = bytes.parameters;
  for (char order = 0; order < placed; ++order) {
    for (int first = 0; first < count && some[int(order)]; ++first) {
      if (order_of[first] != order) continue;
      for (int i = first; i < count; ++i) {
        if (order_of[i] != order) continue;
        if (order == 0 && !trained_alike(p[i], p[first])) continue;
        place(i, order < committed ? bytes.parameters : bytes.buffers);
      }
    }
    if (order < not_trained) bytes.trained = bytes.parameters;
    if (order == committed) bytes.sums = bytes.buffers;
  }
  for (bool is_divided : {true, false}) {
    for (int i = 0; i < count && (!is_divided || bytes.divided > 0); ++i) {
      if ((!p[i].is_buffer && out.parameters[i] < bytes.divided) != is_divided) continue;
      bool const has_copy = m.transposed[r.parameters.begin + i] != copy_layout::none;
      out.transposed[i] = has_copy ? bytes.transposed : -1;
      if (has_copy) bytes.transposed += align_up(p[i].elements() * m.values.widths.value);
    }
    if (is_divided) bytes.divided_transposed = bytes.transposed;
  }
}

/// The layout of the values of a stage: note() finds the first and the last use of each value in
/// each program, run() allocates.
///
/// law: a program reads a value at the address to which the same program, or an earlier program of
///      the same micro-batch, has written the value
class value_layout {
 public:
  /// drops: whether forward drops the values that backward recomputes. scratch.seen must be in its
  /// initial state.
  constexpr value_layout(compiled_model const& m, stage_range const& r, int stage, bool drops,
                         layout_scratch scratch)
      : m_(m), r_(r), stage_(stage), drops_(drops), is_last_(stage == m.stages - 1),
        scratch_(scratch), forward_scratch_{scratch.forward_blocks},
        backward_scratch_{scratch.backward_blocks} {}

  /// Notes a program in the order of its segments; the segments of a chain count as one moment.
  constexpr void note(program p, view<scheduled_segment> order, view<launch_chain> chains = {}) {
    length_[int(p)] = order.count;
    chain_walk walk{chains};
    bool const chained = chains.count > 0;
    occurrence* const seen = scratch_.seen[int(p)];
    stage_range const r = r_;  // compilers evaluate members of locals faster
    for (int i = 0; i < order.count; ++i) {
      scheduled_segment const at = order.items[i];
      fused_view const fused = m_.fused.of[int(at.list)];
      segment const s = fused.segments.items[at.index];
      operand const* const first = fused.operands.items + s.first;
      int time = i;
      if (chained && walk.meets(i)) time = chains[walk.next].first;
      for (int k = 0; k < s.operands; ++k) {
        operand const x = first[k];
        if (x.where != space::value) {
          if (x.where == space::input) inputs_read_ |= 1u << x.index;
          if (x.where == space::label) reads_labels_ = true;
          continue;
        }
        int const v = r.local(x.index);
        if (v < 0) continue;
        if (seen[v].first < 0) seen[v].first = time;
        seen[v].last = time;
      }
    }
  }

  /// Allocates all values.
  ///
  /// needs: note() of every program of the stage
  constexpr void run(layout_sinks& out, layout_totals& totals) {
    boundary const entered = m_.boundaries[stage_], left = m_.boundaries[stage_ + 1];
    totals.inputs_read = inputs_read_;
    totals.reads_labels = reads_labels_;
    stage_bytes& bytes = totals.bytes;
    bytes.boundary = left.forward_bytes;
    bytes.gradient = entered.gradient_bytes;
    int const loss_gradient = is_last_ ? r_.local(m_.loss) : -1;
    int const logits = overwritten_logits(op_list::forward),
              recomputed_logits =
                  overwritten_logits(drops_ ? op_list::recompute : op_list::forward);
    program const backward = backward_of(m_.splits_backward);
    bool const ahead = m_.place_of_recompute(drops_) == recompute_place::ahead;
    // Compilers evaluate locals faster than members.
    value_table const values = m_.values;
    occurrence* const in_forward = scratch_.seen[int(program::forward)];
    occurrence* const in_backward = scratch_.seen[int(backward)];
    occurrence const* const in_weights =
        m_.splits_backward ? scratch_.seen[int(program::backward_weight)] : nullptr;
    occurrence* const in_recompute = scratch_.seen[int(ahead ? program::recompute : backward)];
    // The gradient that a loss computes for a value of an earlier stage is sent when backward ends.
    for (handed_on const& x : entered.gradient)
      if (int const at = r_.local(x.what.index); at >= 0 && at < r_.values.size()) {
        occurrence& o = in_backward[at];
        if (!o.any() && at != loss_gradient) o.first = length_[int(backward)];
        if (o.any()) o.last = length_[int(backward)];
      }
    if (logits >= 0) share(program::forward, logits, loss_gradient);
    if (recomputed_logits >= 0)
      share(ahead ? program::recompute : backward, recomputed_logits, loss_gradient);
    // An inference gives what further losses read, after the program has ended.
    for (loss_input const& x : m_.further_inputs)
      if (int const at = x.at.where == space::value ? r_.local(x.at.index) : -1; at >= 0)
        if (in_forward[at].any()) in_forward[at].last = length_[int(program::forward)];
    place_in_slots(entered, left, out);

    bool const keeps_loss = keeps(m_.loss);
    // Backward reads the gradient of the loss, or sends it.
    bool const loss_stays =
        loss_gradient >= 0 && ((in_weights != nullptr && in_weights[loss_gradient].any()) ||
                               (ahead && in_recompute[loss_gradient].any()));
    for (int v = r_.values.begin; v < r_.values.end; ++v) {
      int const at = v - r_.values.begin;
      long const size = values.bytes(v);
      bool const gradient_of_loss = at == loss_gradient;
      bool const for_weights = in_weights != nullptr && in_weights[at].first >= 0;
      bool const again = in_recompute[at].first >= 0;
      bool const for_backward = in_backward[at].first >= 0 || again || for_weights ||
                                gradient_of_loss || (at == logits && keeps_loss);
      // R makes this value for B: R has ended, and other actions of the rank have run, before B
      // begins.
      bool const stays = ahead && again && (in_backward[at].first >= 0 || gradient_of_loss);
      bool const kept = for_backward && (!drops_ || !m_.dropped[v]) && is_in_memory(at);
      address place = out.values[at];
      if (place.where != region::none)
        totals.rereads_result = totals.rereads_result || kept;
      else if (gradient_of_loss && logits >= 0)
        place = out.values[logits];
      else if (kept)
        place = append(region::record, bytes.record, size);
      else
        place = forward_place(in_forward[at], at, size);
      out.values[at] = place;
      if (kept)
        out.recomputed[at] = place;
      else if (gradient_of_loss && recomputed_logits >= 0)
        out.recomputed[at] = out.recomputed[recomputed_logits];
      else if (for_weights || stays || (at == recomputed_logits && loss_stays))
        out.recomputed[at] = append(region::pending, bytes.pending, size);
      else
        out.recomputed[at] = scratch(backward_scratch_, in_recompute[at], at, size);
    }
    if (ahead) backward_scratch_.count = 0;  // another program begins
    for (int v = r_.gradients.begin; v < r_.gradients.end; ++v) {
      int const at = v - r_.gradients.begin + r_.values.size();
      bool const for_weights = in_weights != nullptr && in_weights[at].first >= 0;
      if (out.recomputed[at].where != region::none)
        totals.rereads_gradient = totals.rereads_gradient || for_weights;
      else if (for_weights)
        out.recomputed[at] = append(region::pending, bytes.pending, values.bytes(v));
      else
        out.recomputed[at] = scratch(backward_scratch_, in_backward[at], at, values.bytes(v));
    }
    bytes.scratch = forward_scratch_.peak > backward_scratch_.peak ? forward_scratch_.peak
                                                                   : backward_scratch_.peak;
    relay(entered, left, out);
  }

 private:
  /// Values that cross the next cut, and gradients that leave, are computed in their boundary
  /// slots, so that nothing is copied before they are sent.
  constexpr void place_in_slots(boundary const& entered, boundary const& left,
                                layout_sinks& out) const {
    for (handed_on const& x : left.forward)
      if (int const at = r_.local(x.what.index); at >= 0)
        out.values[at] = address{region::boundary_out, x.offset};
    for (handed_on const& x : entered.gradient)
      if (int const at = r_.local(x.what.index); at >= r_.values.size())
        out.recomputed[at] = address{region::gradient_out, x.offset};
  }
  /// Whether forward value v is stored for backward, not recomputed.
  constexpr bool keeps(int v) const { return !drops_ || !m_.dropped[v]; }

  /// The index of the logits, if only the loss reads them: then the gradient of the loss overwrites
  /// the logits, at the same address. Otherwise -1.
  constexpr int overwritten_logits(op_list l) const {
    return is_last_ && m_.logits_read[l] == 1 ? r_.local(m_.logits) : -1;
  }
  /// Extends the lifetime of value `from` in a program to the end of the lifetime of `to`, which
  /// takes over the memory.
  constexpr void share(program p, int from, int to) {
    occurrence &a = scratch_.seen[int(p)][from], &b = scratch_.seen[int(p)][to];
    if (a.any() && b.any() && b.last > a.last) a.last = b.last;
  }
  /// The next address of a region that grows: records, pending records.
  static constexpr address append(region where, long& end, long size) {
    address const a{where, end};
    end += size;
    return a;
  }
  /// Whether value `at` of the stage is in memory, not only inside of a chain.
  constexpr bool is_in_memory(int at) const {
    return scratch_.in_memory == nullptr || scratch_.in_memory[at];
  }
  /// The address in scratch of value `at` of the stage; none for a value that no program touches,
  /// or that exists only inside of a chain.
  constexpr address scratch(scratch_allocator& allocator, occurrence o, int at, long size) const {
    if (!o.any() || !is_in_memory(at)) return address{};
    return address{region::scratch, allocator.allocate(size, o.first, o.last)};
  }
  /// As scratch(), for a value that only forward touches, in training or only in evaluation.
  constexpr address forward_place(occurrence o, int at, long size) {
    if (o.any() && scratch_.in_evaluation != nullptr && scratch_.in_evaluation[at])
      return address{region::scratch, forward_scratch_.allocate(size, o.first, o.last)};
    return scratch(forward_scratch_, o, at, size);
  }
  /// Lists the values and gradients that leave the stage without being computed at their slot.
  constexpr void relay(boundary const& entered, boundary const& left, layout_sinks& out) const {
    for (handed_on const& x : left.forward)
      if (r_.local(x.what.index) < 0)
        out.passed_values.push_back(copied{from_neighbour(entered, left, x.what),
                                           {region::boundary_out, x.offset},
                                           m_.values.bytes(x.what.index)});
    for (handed_on const& x : entered.gradient) {
      int const v = r_.local(x.what.index);  // a forward value is the gradient of the loss
      address const to{region::gradient_out, x.offset};
      long const bytes = m_.values.bytes(x.what.index);
      if (v < 0)
        out.passed_gradients.push_back(copied{from_neighbour(entered, left, x.what), to, bytes});
      else if (m_.values.is_forward(x.what.index))
        out.passed_gradients.push_back(copied{out.recomputed[v], to, bytes});
    }
  }

  compiled_model const& m_;
  stage_range const& r_;
  int const stage_;
  bool const drops_, is_last_;
  layout_scratch scratch_;
  int length_[program_count]{};
  unsigned inputs_read_ = 0;
  bool reads_labels_ = false;
  scratch_allocator forward_scratch_, backward_scratch_;
};

}  // namespace pp::detail
