// SPDX-License-Identifier: BSL-1.0
//
// The state of a description, as far as its continuation depends on it. A copy of a `Repeat` that
// begins in the same state as the previous copy adds the same items, so only the first copies are
// described.
#pragma once

#include <pipe/graph/graph.hpp>
#include <pipe/graph/handle.hpp>

namespace pp::detail {

/// The state of a builder between two layers.
struct description_state {
  handle current{};
  graph_size sizes{};
  int position = 0, streams = 0;
  short unit = 0;

  /// Whether a description continues from here as it did from `then`: the number of inputs is
  /// equal, and the current value has the same shape and space, is ids or not, and has padding or
  /// not, and the same axis. Numbers of ops and values may differ.
  constexpr bool leads_on_from(description_state const& then) const {
    return current.form == then.current.form && current.is_ids == then.current.is_ids &&
           current.at.where == then.current.at.where &&
           current.padding.where == then.current.padding.where &&
           current.axis == then.current.axis && sizes.inputs == then.sizes.inputs;
  }
  /// The current value after `times` more descriptions like the one from `then` to here.
  constexpr operand result_after(description_state const& then, int times) const {
    operand x = current.at;
    if (x.where == space::value && x.index >= then.sizes.values)
      x.index += times * (sizes.values - then.sizes.values);
    return x;
  }
};

}  // namespace pp::detail
