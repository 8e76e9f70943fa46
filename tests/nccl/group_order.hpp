// SPDX-License-Identifier: BSL-1.0
//
// Proof that groups of messages cannot wait for each other for ever. Every process has a list of
// groups, which it makes one after the other; a group ends when all its messages have met those of
// the other side, as with NCCL, which buffers nothing.
#pragma once

#include <vector>

namespace pp::detail {

/// A message of a group: to or from another process.
struct group_message {
  int peer = 0;
  bool is_sent = false;
  long bytes = 0;
  /// Whether this message of a process is the other side of one of another process.
  bool meets(int process, group_message const& other, int by) const {
    return peer == by && other.peer == process && is_sent != other.is_sent && bytes == other.bytes;
  }
};
/// Messages that begin and end together.
using message_group = std::vector<group_message>;

/// A group of a process: no process, if there is none.
struct group_place {
  int process = -1, group = 0;
  bool operator==(group_place const&) const = default;
};

/// The first group, in the order of processes, that never ends if the processes make these groups;
/// none if all end.
///
/// shape: groups: [processes, groups of the process]
/// law:   it is the same for devices that run one kernel at a time and for all others, as a process
///        begins a group only when the one before it has ended
inline group_place first_group_that_hangs(std::vector<std::vector<message_group>> groups) {
  int const n = int(groups.size());
  std::vector<int> at(groups.size());  // by process: the group that is going on
  auto const current = [&](int p) -> message_group* {
    return at[p] < int(groups[p].size()) ? &groups[p][at[p]] : nullptr;
  };
  // The first message of a group with this peer in this direction: those match in their order.
  auto const first = [&](int p, int peer, bool is_sent) -> group_message* {
    if (message_group* const g = current(p))
      for (group_message& m : *g)
        if (m.peer == peer && m.is_sent == is_sent) return &m;
    return nullptr;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (int p = 0; p < n; ++p)
      for (int q = 0; q < n; ++q) {
        group_message* const a = first(p, q, true);
        group_message* const b = first(q, p, false);
        if (a == nullptr || b == nullptr || a == b || !a->meets(p, *b, q)) continue;
        current(p)->erase(current(p)->begin() + (a - current(p)->data()));
        group_message* const c = first(q, p, false);  // of a process's messages to itself it moves
        current(q)->erase(current(q)->begin() + (c - current(q)->data()));
        moves = true;
      }
    for (int p = 0; p < n; ++p)
      while (current(p) != nullptr && current(p)->empty()) ++at[p], moves = true;
  }
  for (int p = 0; p < n; ++p)
    if (current(p) != nullptr) return {p, at[p]};
  return {};
}

}  // namespace pp::detail
