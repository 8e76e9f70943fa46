// SPDX-License-Identifier: BSL-1.0
//
// The ranges in which the optimizer updates a stage's parameters: the fewest calls that parameter
// kinds and groups allow.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/base/view.hpp>
#include <pipe/graph/op.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// Appends the ranges of a stage's parameters. Trained parameters that are not tied come first in
/// memory. Returns the number of elements of optimizer state for all ranges.
///
/// shape: by_offset[parameters.count]; at most as many ranges
/// law:   the ranges cover the trained parameters in memory order; each is one parameter for an
///        optimizer of whole tensors, or a maximal range of neighbours with the same scale factors
template <class Optimizer, class Element>
constexpr long find_update_ranges(view<parameter> parameters, int const* by_offset,
                                  sink<update_range>& ranges) {
  update_range* last = nullptr;
  for (int i = 0; i < parameters.count; ++i) {
    parameter const& p = parameters.items[by_offset[i]];
    // All later parameters in memory are tied or not trained.
    if (!p.trained || p.tied_to >= 0) break;
    bool const whole = detail::updates_whole<Optimizer>(p.kind);
    long const n = padded<Element>(p.elements());
    if (last != nullptr && !whole && !last->whole && last->rate_scale == p.rate_scale &&
        last->decay_scale == p.decay_scale) {
      last->end += n;
      last->shape.columns += n;
    } else {
      long const begin = last == nullptr ? 0 : last->end;
      custom::tensor_shape const shape =
          whole ? custom::tensor_shape{p.kind, p.rows(), p.columns()}
                : custom::tensor_shape{custom::tensor_kind::vector, 1, n};
      ranges.push_back(
          update_range{begin, begin + n, 0, whole, shape, p.rate_scale, p.decay_scale});
      last = ranges.items + ranges.count - 1;
    }
  }
  // Each range has its own part of the state, padded to the alignment of parameters.
  long state = 0;
  for (int i = 0; i < ranges.count; ++i) {
    update_range& u = ranges.items[i];
    u.state = state;
    u.state_size = padded<Element>(state_elements<Optimizer>(u.whole, u.shape));
    state += u.state_size;
  }
  return state;
}

/// Elements of workspace that an optimizer needs for the most demanding of these ranges. On a
/// device, which updates all of them at once, that is part of the executor's bookkeeping.
template <class Optimizer, class Backend, class Element>
constexpr long most_workspace_elements([[maybe_unused]] view<update_range> ranges) {
  long most = 0;
  if constexpr (!Backend::has_own_memory)
    for (update_range const& each : ranges) {
      long const needed = workspace_elements<Optimizer, Backend, Element>(each.whole, each.shape);
      if (needed > most) most = needed;
    }
  return most;
}

}  // namespace pp::detail
