// SPDX-License-Identifier: BSL-1.0
//
// A kernel group: ops that run as one kernel. Its description holds geometry and structure but no
// value, so equal groups of a model compare equal and are compiled once; which memory a launch
// reads and writes is a list of operands beside it.
#pragma once

#include <cstdint>

#include <pipe/base/static_vector.hpp>
#include <pipe/graph/op.hpp>

namespace pp {

/// One pointwise op of a group: v = op(v, operand), optionally stored. Slots are positions in a
/// launch's operand list.
struct step {
  op_kind kind;
  short leaf;         // of a map: where its formula is found
  signed char slot;   // second operand, or -1
  signed char store;  // where v goes after this step, or -1: nothing else reads it
  friend constexpr bool operator==(step const&, step const&) = default;
};

/// anchor in -> [prologue on the anchor's main operand] -> anchor -> [epilogue on its result] ->
/// out
struct group {
  static constexpr int max_steps = 8, max_slots = 20;

  op_kind anchor = op_kind::none;
  short leaf = 0;               // of an anchor with a formula: where it is found
  int rows = 0, columns = 0;    // per sample, as in op
  pp::attributes attributes{};  // of the anchor
  signed char in[op::max_in]{-1, -1, -1, -1, -1, -1};
  signed char out[op::max_out]{-1, -1, -1};
  static_vector<step, max_steps> prologue, epilogue;
  int slots = 0;
  int present = 0;  // bit k: in[k] is there; bit max_in + k: out[k] is

  /// Slots are given out in order: where the same ones are present, they have the same numbers.
  friend constexpr bool operator==(group const& a, group const& b) {
    return a.anchor == b.anchor && a.columns == b.columns && a.rows == b.rows &&
           a.present == b.present && a.slots == b.slots && a.leaf == b.leaf &&
           a.attributes == b.attributes && a.prologue == b.prologue && a.epilogue == b.epilogue;
  }
};

/// written(slot) for every operand that the group writes, absent ones (-1) among them.
template <class Written>
constexpr void for_each_written(group const& g, Written written) {
  for (signed char const slot : g.out) written(slot);
  for (step const& s : g.prologue) written(s.store);
  for (step const& s : g.epilogue) written(s.store);
}

/// The operands of one launch, by slot.
using operands = static_vector<operand, group::max_slots>;

struct described_group {
  group shape;
  pp::operands operands;
};

/// A launch before addresses are known: ops [begin, end) of a list, as the distinct group number
/// `group`, which has `operands` operands, in the list of all from `first` on.
struct segment {
  int begin = 0, end = 0;
  int group = 0;
  int first = 0, operands = 0;
};

}  // namespace pp
