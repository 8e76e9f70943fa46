// SPDX-License-Identifier: BSL-1.0
//
// An instruction of a rank under message passing: an action, a send or a receive.
#pragma once

#include <pipe/schedule/action.hpp>

namespace pp::detail {

/// Compute: an action of the table. Send, receive: one side of the transfer of an action's result.
enum class instruction_kind : unsigned char { compute, send, receive };

/// law: `of` is the action that runs, or the F or B whose result is transferred; `peer` is the
///      other rank of a transfer, -1 for compute
struct rank_instruction {
  instruction_kind kind = instruction_kind::compute;
  action of{};
  int peer = -1;

  friend constexpr bool operator==(rank_instruction const&, rank_instruction const&) = default;
};

/// The backward of the pair whose forward an instruction computes; null if the instruction computes
/// no pair.
constexpr action const* second_of(rank_instruction const* instruction) {
  if (!instruction->of.with_next) return nullptr;
  do ++instruction;
  while (instruction->kind != instruction_kind::compute);
  return &instruction->of;
}

}  // namespace pp::detail
