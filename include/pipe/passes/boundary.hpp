// SPDX-License-Identifier: BSL-1.0
//
// The boundary between two neighbouring stages: the main value and every named value with later
// readers, and on the way back the gradients of these values. A value that passes through a stage
// is in both boundaries of the stage.
#pragma once

#include <initializer_list>

#include <pipe/passes/value_table.hpp>

namespace pp::detail {

/// A value in a boundary's slot, `offset` bytes from the start of the slot.
struct handed_on {
  operand what{};
  long offset = 0;
};

/// The values that cross one cut, the gradients that come back for these values, and the bytes of a
/// slot in each direction.
///
/// `gradient` also has the values that later stages have made again for a Reversible. The offsets
/// of `forward` and of `gradient` both begin at 0.
struct boundary {
  view<handed_on> forward, gradient;
  long forward_bytes = 0, gradient_bytes = 0;
};

/// The index of x in a list, or -1.
constexpr int find(view<handed_on> list, operand x) {
  for (int i = 0; i < list.count; ++i)
    if (list.items[i].what == x) return i;
  return -1;
}

/// The boundaries of all stages: number s is before stage s. The last is empty, and so is the first
/// unless inputs have gradients, which leave the first stage.
struct boundary_table {
  /// The boundary before one stage: ranges of `items`, and the bytes of a slot in each direction.
  struct entry {
    range forward{}, gradient{};  // of `items`
    long forward_bytes = 0, gradient_bytes = 0;
  };
  view<entry> entries;
  view<handed_on> items;

  /// needs: 0 <= s <= stages
  constexpr boundary operator[](int s) const {
    entry const& e = entries.items[s];
    return boundary{items.part(e.forward), items.part(e.gradient), e.forward_bytes,
                    e.gradient_bytes};
  }
};

/// The last reader of each value.
///
/// shape: forward ops -> reader[values]: units
/// needs: reader is initially 0, and stays 0 for a value without a reader, which crosses no cut
constexpr void find_last_readers(view<op> ops, short* reader) {
  for (int i = 0; i < ops.count; ++i) {
    op const o = ops.items[i];
    for (int k = 0; k < o.ins; ++k)
      if (o.in[k].where == space::value) reader[o.in[k].index] = o.unit;
  }
}

/// Lists the values that cross the cut before unit `cut`: made before that unit, read in it or
/// later.
///
/// law:  values ascend
/// cost: the values before the cut
constexpr void list_crossing(graph_view const& g, short const* last_reader, int cut,
                             sink<handed_on>& values) {
  int const made = g.first_value(cut);
  for (int v = 0; v < made; ++v)
    if (last_reader[v] >= cut) values.push_back(handed_on{value_operand(v)});
}

/// The number of values that cross the cuts of a model, each counted at every cut.
///
/// cost: stages times values
constexpr int count_crossings(graph_view const& g, short const* last_reader, int const* cuts,
                              int stages) {
  sink<handed_on> values;
  for (int s = 1; s < stages; ++s) list_crossing(g, last_reader, cuts[s], values);
  return values.count;
}

/// Finds every boundary of a model with these cuts. A value that crosses a cut may bring back two
/// values, its gradient and the value itself as it was made again. The gradient of
/// an input crosses every cut before a reader of the input, and leaves the first stage.
///
/// shape: cuts[stages + 1] -> entries[stages + 1], items: at most three for each crossing, and one
///        for each input and stage
/// needs: entries are initially default
/// law:   gradients are in the order of their values, each once; a value without a gradient brings
///        back none
constexpr void find_boundaries(graph_view const& g, gradient_view const& backward,
                               value_table const& values, short const* last_reader, int const* cuts,
                               int stages, boundary_table::entry* entries, sink<handed_on>& items) {
  for (int s = backward.inputs > 0 ? 0 : 1; s < stages; ++s) {
    boundary_table::entry& e = entries[s];
    e.forward.begin = items.count;
    list_crossing(g, last_reader, cuts[s], items);
    e.forward.end = e.gradient.begin = items.count;
    auto const bring_back = [&](operand x) {
      bool const known =  // two values may have one gradient
          find(items.filled().part({e.gradient.begin, items.count}), x) >= 0;
      if (x.where != space::value || known) return;
      items.push_back(handed_on{x, e.gradient_bytes});
      e.gradient_bytes += values.bytes(x.index);
    };
    for (int i = e.forward.begin; i < e.forward.end; ++i) {
      int const v = items.items[i].what.index;
      items.items[i].offset = e.forward_bytes;
      e.forward_bytes += values.bytes(v);
      bring_back(backward.entering(cuts[s], v));
      bring_back(backward.remade(cuts[s], v));
    }
    for (int i = 0; i < backward.inputs; ++i)
      bring_back(backward.entering(cuts[s], crossing_of_input(i)));
    e.gradient.end = items.count;
  }
}

}  // namespace pp::detail
