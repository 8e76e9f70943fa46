// SPDX-License-Identifier: BSL-1.0
//
// Fusion of the copies of a Repeat: compilers that evaluate passes spend a microsecond on each step
// of fuse(), so a deep model's copies are not described again.
#pragma once

#include <pipe/graph/graph.hpp>
#include <pipe/passes/known_groups.hpp>
#include <pipe/passes/joined_ops.hpp>

namespace pp::detail {

/// The copies of a repetition, fused as an earlier copy was.
///
/// The second of two successive copies with the same groups is the model of later copies: the
/// segments of a later copy are those of the model, shifted, if its values have as many readers as
/// those of the model and no cut is in it.
class fused_copies {
 public:
  /// sources: working memory, an item for each operand of the list of ops
  constexpr fused_copies(view<op> ops, view<repetition> repetitions, int const* uses,
                         bool const* read_once, short const* stage_of_unit, int* sources)
      : ops_(ops), repetitions_(repetitions), uses_(uses), read_once_(read_once),
        stage_of_unit_(stage_of_unit), sources_(sources) {}

  /// Adds the segments of the copies from op `begin` on that fuse as the model did; returns the op
  /// behind them, or `begin` if there are none.
  ///
  /// needs: a segment begins at `begin`; add() is called for every segment
  constexpr int add(int begin, known_groups const& known, fused_sinks& f) {
    int const unit = ops_.items[begin].unit;
    // Copies begin where units do: inside of a unit nothing is added.
    if (unit == unit_) return begin;
    unit_ = unit;
    int const copy = find(unit);
    if (copy == copy_) return begin;
    copy_ = copy;
    if (model_.ops == 0) {
      earlier_ = later_;
      later_ = now_;
      now_ = place{begin, f.segments.count, f.operands.count};
      if (copy < 0) earlier_ = later_ = now_ = place{};
      if (earlier_.op >= 0) adopt(known, f);
    }
    while (model_.ops > 0 && copy_ >= 0 && is_like_model(begin, f)) {
      push(begin, f);
      begin += model_.ops;
      unit_ = ops_.items[begin].unit;
      copy_ = find(unit_);
    }
    return begin;
  }

 private:
  /// The beginning of a copy in all lists.
  struct place {
    int op = -1, segment = 0, operand = 0;
  };
  /// The copy that later copies repeat: its first op and segment, and the lengths of its lists.
  struct copy_model {
    int op = 0, ops = 0, segment = 0, segments = 0, operands = 0;
  };

  /// The number of the copy that has a unit, in the unit's repetition; -1 for a unit outside of all
  /// repetitions.
  ///
  /// A unit outside of the last repetition ends that repetition: its model and places are
  /// forgotten.
  constexpr int find(int unit) {
    if (in_.copy_with(unit) < 0) {
      model_ = copy_model{};
      earlier_ = later_ = now_ = place{};
      for (repetition const& r : repetitions_)
        if (r.copy_with(unit) >= 0) in_ = r;
    }
    return in_.copy_with(unit);
  }
  constexpr int stage_at(int op) const { return stage_of_unit_[ops_.items[op].unit]; }

  /// Takes the copy that ends at now_ as the model, if this copy has the groups of the copy before
  /// it, both copies and the next op are in one stage, and known_groups keeps all of these groups.
  constexpr void adopt(known_groups const& known, fused_sinks const& f) {
    int const segments = now_.segment - later_.segment;
    if (later_.segment - earlier_.segment != segments ||
        later_.op - earlier_.op != now_.op - later_.op ||
        stage_at(earlier_.op) != stage_at(now_.op))
      return;
    segment const* const s = f.segments.items;
    for (int i = 0; i < segments; ++i) {
      int const group = s[later_.segment + i].group;
      if (group != s[earlier_.segment + i].group || group >= int(known.first.size())) return;
    }
    model_ = copy_model{later_.op, now_.op - later_.op, later_.segment, segments,
                        now_.operand - later_.operand};
    sink<int> sources{sources_};
    for (int i = 0; i < segments; ++i) {
      segment const& one = s[later_.segment + i];
      list_sources(known.first.items[one.group], one, sources);
    }
  }
  /// Lists the sources of the operands of a segment, by index: 16 times the number of the op in the
  /// copy, plus k for in[k], or plus 8 + k for out[k].
  constexpr void list_sources(group const& g, segment const& s, sink<int>& sources) const {
    int const first = 16 * (s.begin - model_.op);
    bool const has_anchor = g.anchor != op_kind::pointwise;
    int const anchor = first + 16 * int(g.prologue.size());
    int* const index = sources.items + sources.count;
    index[0] = is_pointwise(ops_.items[s.begin].kind) ? first : anchor;
    if (has_anchor) {
      for (int k = 1; k < op::max_in; ++k)
        if (g.in[k] >= 0) index[g.in[k]] = anchor + k;
      for (int k = 0; k < op::max_out; ++k)
        if (g.out[k] >= 0) index[g.out[k]] = anchor + 8 + k;
    }
    list_ops(g.prologue, first, index);
    list_ops(g.epilogue, has_anchor ? anchor + 16 : first, index);
    sources.count += s.operands;
  }
  /// `first`: the source of the first op; the ops of a list are consecutive.
  static constexpr void list_ops(static_vector<pointwise_op, group::max_ops> const& ops, int first,
                                 int* index) {
    for (pointwise_op const& s : ops) {
      if (s.operand >= 0) index[s.operand] = first + 1;
      if (has_third(s.kind)) index[s.operand + 1] = first + 2;
      if (s.store >= 0) index[s.store] = first + 8;
      first += 16;
    }
  }

  /// Whether ops from `begin` on fuse as the model did: they are a copy that is not the last, in
  /// one stage, and the values inside of their groups have as many readers as those of the model.
  constexpr bool is_like_model(int begin, fused_sinks const& f) const {
    int const end = begin + model_.ops;
    if (end >= ops_.count || in_.copy_with(ops_.items[end - 1].unit) != copy_) return false;
    int const next = in_.copy_with(ops_.items[end].unit);
    if (next < 0 || next == copy_ || stage_at(begin) != stage_at(end - 1)) return false;
    int const shift = begin - model_.op;
    for (int i = 0; i < model_.segments; ++i) {
      segment const s = f.segments.items[model_.segment + i];
      for (int at = s.begin; at + 1 < s.end; ++at)
        if (readers(ops_.items[at].out[0]) != readers(ops_.items[at + shift].out[0])) return false;
      for (int at = s.begin; read_once_ != nullptr && at < s.end; ++at)
        if (joins_product(ops_.items, at, read_once_) !=
            joins_product(ops_.items, at + shift, read_once_))
          return false;
    }
    return true;
  }
  constexpr int readers(operand x) const { return x.where == space::value ? uses_[x.index] : 0; }

  /// Appends the segments and operands of the model, shifted to the copy that begins at op `begin`.
  ///
  /// cost: an assignment per operand; no group is described or compared
  constexpr void push(int begin, fused_sinks& f) const {
    int const shift = begin - model_.op, first = f.operands.count;
    int const added = first - f.segments.items[model_.segment].first;
    int const units = ops_.items[begin].unit - ops_.items[model_.op].unit;
    for (int i = 0; i < model_.segments; ++i) {
      segment s = f.segments.items[model_.segment + i];
      s.begin += shift;
      s.end += shift;
      s.first += added;
      s.first_origin = ops_.items[s.begin].origin;
      s.last_origin = ops_.items[s.end - 1].origin;
      s.unit = short(s.unit + units);
      f.segments.push_back(s);
    }
    for (int i = 0; i < model_.operands; ++i) {
      int const source = sources_[i];
      op const& o = ops_.items[begin + source / 16];
      f.operands.items[first + i] = source & 8 ? o.out[source & 7] : o.in[source & 7];
    }
    f.operands.count = first + model_.operands;
  }

  view<op> const ops_;
  view<repetition> const repetitions_;
  int const* const uses_;
  bool const* const read_once_;
  short const* const stage_of_unit_;
  int* const sources_;
  repetition in_{};                    // of the last op
  int unit_ = -1, copy_ = -1;          // of the last op
  place earlier_{}, later_{}, now_{};  // of the last three copies
  copy_model model_{};
};

}  // namespace pp::detail
