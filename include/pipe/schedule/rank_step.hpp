// SPDX-License-Identifier: BSL-1.0
//
// A step of a rank under message passing: an action, a send or a receive.
#pragma once

#include <pipe/schedule/action.hpp>

namespace pp::detail {

/// Compute: an action of the table. Send, receive: one side of the transfer of an action's result.
enum class step_kind : unsigned char { compute, send, receive };

/// law: `of` is the action that runs, or the F or B whose result is transferred; `peer` is the
///      other rank of a transfer, -1 for compute
struct rank_step {
  step_kind kind = step_kind::compute;
  action of{};
  int peer = -1;

  friend constexpr bool operator==(rank_step const&, rank_step const&) = default;
};

/// The backward of the pair whose forward a step computes; null if the step computes no pair.
constexpr action const* second_of(rank_step const* step) {
  if (!step->of.with_next) return nullptr;
  do ++step;
  while (step->kind != step_kind::compute);
  return &step->of;
}

}  // namespace pp::detail
