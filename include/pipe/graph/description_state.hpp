// SPDX-License-Identifier: BSL-1.0
//
// The state of a description, as far as its continuation depends on it: copies of a `Repeat` that
// find the same are counted once.
#pragma once

#include <pipe/graph/graph.hpp>
#include <pipe/graph/handle.hpp>

namespace pp {

struct description_state {
  handle current{};
  graph_size sizes{};
  int position = 0, streams = 0;
  short unit = 0;

  /// Whether what comes next finds all that it may look at as it was then.
  constexpr bool leads_on_from(description_state const& then) const {
    return current.form == then.current.form && current.is_ids == then.current.is_ids &&
           current.at.where == then.current.at.where &&
           current.padding.where == then.current.padding.where && sizes.inputs == then.sizes.inputs;
  }
};

}  // namespace pp
