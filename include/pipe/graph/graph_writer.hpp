// SPDX-License-Identifier: BSL-1.0
//
// The lists of a graph while its model is described: units begin and end, ops and values are
// appended. Without room items are only counted.
#pragma once

#include <pipe/graph/axes.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/handle.hpp>

namespace pp::detail {

/// Base of the builder: the items so far, and the unit that new items belong to.
template <graph_size Room>
class graph_writer {
 public:
  static constexpr bool keeps = Room.units > 0;

  constexpr graph_size sizes() const { return sizes_; }
  constexpr int open_units() const { return sizes_.units; }

 protected:
  constexpr void begin_unit(int leaf) {
    ++unit_;
    if constexpr (keeps)
      graph_.units[unit_] = unit_record{sizes_.ops,  sizes_.values, sizes_.parameters,
                                        short(leaf), operand{},     sample_shape{}};
    first_op_ = sizes_.ops;
    leaf_of_unit_ = leaf;
    ++sizes_.units;
  }
  /// Ends a unit with its result. A layer without ops (Flatten) is not a unit: it becomes part of
  /// the next one.
  constexpr void end_unit(handle const& result) {
    if (sizes_.ops > first_op_) return end_with(result);
    --unit_;
    --sizes_.units;
  }
  /// The result of the last unit, which is complete.
  constexpr void end_with(handle const& result) {
    if constexpr (keeps) {
      graph_.units[unit_].result = result.at;
      graph_.units[unit_].out = result.form;
    }
  }
  /// Ends a unit with a result, and begins another of the same layer.
  constexpr void divide_unit(handle const& result) {
    end_unit(result);
    begin_unit(leaf_of_unit_);
    if constexpr (keeps) graph_.units[unit_].continues = true;
  }
  constexpr operand new_value(long elements) {
    if constexpr (keeps) graph_.values[sizes_.values] = value{elements, unit_};
    return value_operand(sizes_.values++);
  }

  graph_size sizes_{};
  short unit_ = -1;
  int first_op_ = 0, leaf_of_unit_ = 0;  // of the unit that was begun last
  graph<Room> graph_{};
};

}  // namespace pp::detail
