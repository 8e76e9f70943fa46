// SPDX-License-Identifier: BSL-1.0
//
// The state of a description, as far as its continuation depends on it. A copy of a `Repeat` that
// begins in the same state as the one before it adds the same, so only the first copies are
// described when a model is counted.
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

  /// Whether a description continues from here as it did from `then`.
  constexpr bool leads_on_from(description_state const& then) const {
    return current.form == then.current.form && current.is_ids == then.current.is_ids &&
           current.at.where == then.current.at.where &&
           current.padding.where == then.current.padding.where && sizes.inputs == then.sizes.inputs;
  }
};

}  // namespace pp::detail
