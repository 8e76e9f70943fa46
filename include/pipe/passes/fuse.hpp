// SPDX-License-Identifier: BSL-1.0
//
// Fusion of ops into kernel groups. The rules, applied to each list of ops from left to right:
//
//   1. A pointwise op joins the epilogue of the group before it if that group makes its main
//      operand.
//   2. A matmul, a norm or a softmax takes the chain of pointwise ops before it as its prologue if
//      the chain makes its main operand.
//   3. A bias gradient joins the weight gradient of the matmul that shares its operand.
//
// A group never crosses a cut of the model. A value inside a group is written only if it is read
// outside the group.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/passes/group.hpp>

namespace pp {

/// Whether op `next` may join the group of ops [begin, at), which ends in op `last`: rules 1 to 3
/// above.
constexpr bool joins(op const* ops, int begin, int at, op const& last, op const& next) {
  if (at - begin >= group::max_steps) return false;
  if (last.kind == op_kind::bias_gradient)
    return at - begin == 1 && next.kind == op_kind::matmul_weight_gradient &&
           next.in[1] == last.in[0];
  if (next.in[0].index != last.out[0].index || !(next.in[0] == last.out[0]) ||
      next.in[0].where != space::value)
    return false;
  if (is_pointwise(next.kind)) {
    if (!takes_epilogue(last.kind) || next.rows != last.rows || next.columns != last.columns)
      return false;
    // The second operand must be in memory before the group starts.
    for (int i = begin; i < at; ++i)
      if (next.in[1].where == space::value && next.in[1] == ops[i].out[0]) return false;
    return true;
  }
  if (!takes_prologue(next.kind)) return false;
  for (int i = begin; i < at; ++i)
    if (!is_pointwise(ops[i].kind)) return false;
  int const width =
      next.kind == op_kind::matmul ? next.attributes.contraction().inner : next.columns;
  return next.rows == last.rows && width == last.columns;
}

/// Describes the group of ops [begin, end). Its operands, one for each slot, are written to
/// `slots`.
///
/// The compiler spends much of its time here, so ops are copied and calls are written out.
constexpr group describe_group(op const* ops, int begin, int end, int const* uses, operand* slots) {
  group g;
  int anchor = begin;
  op a = ops[begin];
  bool const starts_pointwise = is_pointwise(a.kind);
  while (anchor + 1 < end && (a.kind == op_kind::bias_gradient || is_pointwise(a.kind)))
    a = ops[++anchor];
  bool const chain_only = anchor + 1 == end && is_pointwise(a.kind);
  if (chain_only) anchor = -1;
  g.anchor = chain_only ? op_kind::pointwise : a.kind;
  g.rows = a.rows;
  g.columns = a.columns;
  if (!chain_only) {
    if (reads_layer(a)) g.leaf = a.leaf;
    g.attributes = a.attributes;
  }
  int n = 0, present = 1;
  slots[n++] = starts_pointwise ? ops[begin].in[0] : a.in[0];
  g.in[0] = 0;
  for (int i = begin; i < end; ++i) {
    op const o = ops[i];
    // A result whose only reader is the next op of the group never reaches memory.
    bool const inside = i + 1 < end && o.out[0].where == space::value &&
                        uses[o.out[0].index] == 1 && ops[i + 1].in[0] == o.out[0];
    if (i != anchor) {
      step s{o.kind, 0, -1, -1};
      if (is_by_leaf(o.kind)) s.leaf = o.leaf;
      if (o.ins > 1 && o.kind != op_kind::bias_gradient) {
        s.slot = static_cast<signed char>(n);
        slots[n++] = o.in[1];
      }
      if (!inside) {
        s.store = static_cast<signed char>(n);
        slots[n++] = o.out[0];
      }
      if (i < anchor)
        g.prologue.items[g.prologue.count++] = s;
      else
        g.epilogue.items[g.epilogue.count++] = s;
      continue;
    }
    for (int k = 1; k < o.ins; ++k)
      if (o.in[k].where != space::none) {
        present |= 1 << k;
        g.in[k] = static_cast<signed char>(n);
        slots[n++] = o.in[k];
      }
    for (int k = 0; k < op::max_out; ++k)
      if (o.out[k].where != space::none && !(k == 0 && inside)) {
        present |= 1 << (op::max_in + k);
        g.out[k] = static_cast<signed char>(n);
        slots[n++] = o.out[k];
      }
  }
  g.slots = n;
  g.present = present;
  return g;
}

/// A list of ops as a list of launches.
///
/// law: the segments cover the ops in order; segments with the same group number have equal
///      descriptions; `distinct[g]` is the first segment of group g; the operands of segment s, by
///      slot, are operands[s.first], operands[s.first + 1] ...
struct fused_view {
  view<segment> segments;
  view<operand> operands;
  view<int> distinct;
};

/// The output of fuse(): at most a segment and a distinct group per op, and as many operands as the
/// ops read and write.
struct fused_sinks {
  sink<segment> segments;
  sink<operand> operands;
  sink<int> distinct;
  /// Views of what has been filled; the memory is the caller's.
  constexpr fused_view filled() const {
    return fused_view{segments.filled(), operands.filled(), distinct.filled()};
  }
};

namespace detail {

/// A hash. law: equal groups have equal hashes; callers check equality as well
constexpr std::uint64_t hash_of(group const& g) {
  std::uint64_t h = 14695981039346656037u;
  auto const mix = [&](long v) { h = (h ^ std::uint64_t(v)) * 1099511628211u; };
  mix(long(g.anchor) + 64L * g.slots);
  mix(g.rows + (long(g.columns) << 24));
  mix(g.attributes.hash());
  for (step const& s : g.prologue)
    mix(long(s.kind) + 64L * (s.slot + 1 + 64L * (s.store + 1 + 64L * s.leaf)));
  mix(-1);
  for (step const& s : g.epilogue)
    mix(long(s.kind) + 64L * (s.slot + 1 + 64L * (s.store + 1 + 64L * s.leaf)));
  return h;
}

}  // namespace detail

/// Working memory of fuse(), initially 0: one more item than ops; an item for each operand.
struct fuse_scratch {
  std::uint64_t* hashes = nullptr;
  int* after = nullptr;
  int* sources = nullptr;
};

/// The distinct groups found so far.
struct known_groups {
  static_vector<group, 32> first;  // kept, as describing a group again takes time; most models fit
  std::uint64_t* hashes;
  int* after;  // by group: 1 + the group that followed it last time, as models repeat themselves
  int count = 0, before;

  constexpr known_groups(fuse_scratch scratch, int ops)
      : hashes(scratch.hashes), after(scratch.after), before(ops) {}

  /// The number of group g, perhaps a new one. describe(id) describes group id.
  template <class Describe>
  constexpr int number(group const& g, Describe const& describe) {
    int id = after[before] - 1;
    if (id < 0 || id >= int(first.size()) || !(first.items[id] == g)) id = search(g, describe);
    after[before] = id + 1;
    before = id;
    return id;
  }
  /// The number of group g by hash and equality; a new one if it is not known.
  template <class Describe>
  constexpr int search(group const& g, Describe const& describe) {
    std::uint64_t const h = detail::hash_of(g);
    for (int id = 0; id < count; ++id)
      if (hashes[id] == h && (id < int(first.size()) ? first[id] : describe(id)) == g) return id;
    hashes[count] = h;
    if (first.size() < first.capacity()) first.push_back(g);
    return count++;
  }
};

/// The fusion of a copy, as that of an earlier copy of the same repetition.
///
/// Two copies one after the other with the same groups are the model of all later ones: their
/// segments are those of the second, shifted, as long as values have as many readers and no cut is
/// near.
class fused_copies {
 public:
  constexpr fused_copies(view<op> ops, view<repetition> repetitions, int const* uses,
                         short const* stage_of_unit, int* sources)
      : ops_(ops), repetitions_(repetitions), uses_(uses), stage_of_unit_(stage_of_unit),
        sources_(sources) {}

  /// Adds the segments of the copies that begin at op `begin`, if any can be made; returns the end
  /// of the last. needs: a segment begins there; called for every segment
  constexpr int add(int begin, known_groups const& known, fused_sinks& f) {
    int const unit = ops_.items[begin].unit;
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
  struct copy_model {
    int op = 0, ops = 0, segment = 0, segments = 0, operands = 0;
  };

  /// The copy that has a unit, and its repetition; -1 for a unit outside of all.
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

  /// Takes the copy that ends at now_ as the model, if it is like the one before it, both and the
  /// next op are in one stage, and all its groups are kept.
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
  /// Lists where the operands of a segment are, by slot: 16 times the op, counted from the first of
  /// the copy, plus k for in[k], or plus 8 + k for out[k].
  constexpr void list_sources(group const& g, segment const& s, sink<int>& sources) const {
    int const first = 16 * (s.begin - model_.op);
    bool const has_anchor = g.anchor != op_kind::pointwise;
    int const anchor = first + 16 * int(g.prologue.size());
    int* const slot = sources.items + sources.count;
    slot[0] = is_pointwise(ops_.items[s.begin].kind) ? first : anchor;
    if (has_anchor) {
      for (int k = 1; k < op::max_in; ++k)
        if (g.in[k] >= 0) slot[g.in[k]] = anchor + k;
      for (int k = 0; k < op::max_out; ++k)
        if (g.out[k] >= 0) slot[g.out[k]] = anchor + 8 + k;
    }
    list_steps(g.prologue, first, slot);
    list_steps(g.epilogue, has_anchor ? anchor + 16 : first, slot);
    sources.count += s.operands;
  }
  static constexpr void list_steps(static_vector<step, group::max_steps> const& steps, int first,
                                   int* slot) {
    for (step const& s : steps) {
      if (s.slot >= 0) slot[s.slot] = first + 1;
      if (s.store >= 0) slot[s.store] = first + 8;
      first += 16;
    }
  }

  /// Whether ops from `begin` on fuse as the model did: a copy that is not the last, in one
  /// stage, whose values inside groups have as many readers.
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
    }
    return true;
  }
  constexpr int readers(operand x) const { return x.where == space::value ? uses_[x.index] : 0; }

  constexpr void push(int begin, fused_sinks& f) const {
    int const shift = begin - model_.op, first = f.operands.count;
    int const added = first - f.segments.items[model_.segment].first;
    for (int i = 0; i < model_.segments; ++i) {
      segment const s = f.segments.items[model_.segment + i];
      f.segments.push_back(
          segment{s.begin + shift, s.end + shift, s.group, s.first + added, s.operands});
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
  short const* const stage_of_unit_;
  int* const sources_;
  repetition in_{};                    // of the last op
  int unit_ = -1, copy_ = -1;          // of the last op
  place earlier_{}, later_{}, now_{};  // of the last three copies
  copy_model model_{};
};

/// Fuses a list of ops into segments and distinct groups, greedily from left to right.
///
/// law:  no segment has ops on both sides of a cut; the repetitions change nothing
/// cost: linear in the ops for models that repeat their groups, and less for copies
constexpr void fuse(view<op> list, view<repetition> repetitions, int const* uses,
                    short const* stage_of_unit, fuse_scratch scratch, fused_sinks& f) {
  op const* const ops = list.items;
  int const count = list.count;
  fused_copies copies(list, repetitions, uses, stage_of_unit, scratch.sources);
  known_groups known(scratch, count);
  auto const describe = [&](int id) {
    segment const& s = f.segments.items[f.distinct.items[id]];
    operand ignored[group::max_slots]{};
    return describe_group(ops, s.begin, s.end, uses, ignored);
  };
  for (int begin = 0; begin < count;) {
    begin = copies.add(begin, known, f);
    op last = ops[begin];
    int const stage = stage_of_unit[last.unit];
    int end = begin + 1;
    for (; end < count; ++end) {
      op const next = ops[end];
      if (!joins(ops, begin, end, last, next) || stage_of_unit[next.unit] != stage) break;
      last = next;
    }
    int const first = f.operands.count;
    group const g = describe_group(ops, begin, end, uses, f.operands.items + first);
    f.operands.count += g.slots;
    int const id = known.number(g, describe);
    if (id == f.distinct.count) f.distinct.push_back(f.segments.count);
    f.segments.push_back(segment{begin, end, id, first, g.slots});
    begin = end;
  }
}

}  // namespace pp
