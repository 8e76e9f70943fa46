// SPDX-License-Identifier: BSL-1.0
//
// How the optimizer walks through a stage's parameters: in as few calls as their kinds and groups
// allow.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/base/static_vector.hpp>
#include <pipe/graph/op.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/runtime/description.hpp>

namespace pp {

template <int Parameters>
struct update_list {
  static_vector<update_range, Parameters> ranges;
  long state = 0;  ///< numbers that the optimizer keeps for all of them
};

/// The ranges of consecutive parameters: those that are trained and not tied come first.
///
/// law: the ranges cover the trained parameters in the order in which they lie; each is one
///      parameter that the optimizer takes whole, or all neighbours that are trained alike
template <class Optimizer, class Element, int Parameters, class Order>
constexpr update_list<Parameters> find_update_ranges(parameter const* parameters,
                                                     Order const& by_offset) {
  update_list<Parameters> u;
  for (int i = 0; i < Parameters; ++i) {
    parameter const& p = parameters[by_offset[i]];
    if (!p.trained || p.tied_to >= 0) break;
    bool const whole = updates_whole<Optimizer>(p.kind);
    long const n = padded<Element>(p.elements());
    if (!u.ranges.empty() && !whole && !u.ranges.back().whole &&
        u.ranges.back().rate_scale == p.rate_scale &&
        u.ranges.back().decay_scale == p.decay_scale) {
      u.ranges.back().end += n;
      u.ranges.back().shape.columns += n;
    } else {
      long const begin = u.ranges.empty() ? 0 : u.ranges.back().end;
      tensor_shape const shape =
          whole ? tensor_shape{p.kind, p.rows(), p.columns()} : tensor_shape{tensor_kind::vector, 1, n};
      u.ranges.push_back(
          update_range{begin, begin + n, 0, whole, shape, p.rate_scale, p.decay_scale});
    }
  }
  for (update_range& range : u.ranges) {
    range.state = u.state;
    u.state += padded<Element>(state_elements<Optimizer>(range.whole, range.shape));
  }
  return u;
}

/// The numbers of workspace that an optimizer needs for one of these ranges.
template <class Optimizer, class Backend, class Element, int Parameters>
constexpr long most_workspace_elements(update_list<Parameters> const& updates) {
  long most = 0;
  for (update_range const& range : updates.ranges) {
    long const needed = workspace_elements<Optimizer, Backend, Element>(range.whole, range.shape);
    if (needed > most) most = needed;
  }
  return most;
}

}  // namespace pp
