// SPDX-License-Identifier: BSL-1.0
//
// One step of a rank where values are handed over by messages: an action, a send or a receive.
#pragma once

#include <pipe/schedule/action.hpp>

namespace pp::detail {

/// What a rank does: an action of its table, or one side of the transfer of what an action made.
enum class step_kind : unsigned char { compute, send, receive };

/// law: `of` is the action that runs, or the one (F or B) whose result is handed over; `peer` is
///      the other rank, or -1
struct rank_step {
  step_kind kind = step_kind::compute;
  action of{};
  int peer = -1;

  friend constexpr bool operator==(rank_step const&, rank_step const&) = default;
};

}  // namespace pp::detail
