// SPDX-License-Identifier: BSL-1.0
//
// Blocks of one launch that hand on a result: each leaves its part in memory and takes a ticket,
// and the one that takes the last finds all parts there. It does the rest of the work, in an order
// that does not depend on which block it is: so a second launch is saved, and no bit depends on the
// turn of blocks.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// How many tickets a rank has. They are zeros between launches.
inline constexpr int most_tickets = 1024;

/// The number of tickets that were taken before; the last of `count` makes it 0 again. What blocks
/// before have written is visible to the block, and what it has written to those after it.
///
/// needs: called by one thread, between barriers
PIPE_HD PIPE_INLINE unsigned take_ticket(unsigned* ticket, unsigned count) {
  unsigned before = 0;
#ifdef __CUDA_ARCH__
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(ticket))
               : "memory");
#else
  before = (*ticket)++;
#endif
  if (before + 1 == count) {
    constexpr unsigned zero[] = {0};
    store_words<memory_space::global>(ticket, zero);
  }
  return before;
}

/// Whether a block is the last of `count` that come here with this ticket: then it sees all that
/// they wrote before. is_last: the block's, in shared memory.
///
/// law:   true in exactly one of them
/// needs: called between phases; `count` is the same in all of these blocks, and positive
template <class Block>
PIPE_HD PIPE_INLINE bool is_last_block(Block& block, unsigned* ticket, unsigned count,
                                       bool& is_last) {
  block.phase([](int, typename Block::state&) {});
  block.phase([&](int thread, typename Block::state&) {
    if (thread == 0) is_last = take_ticket(ticket, count) + 1 == count;
  });
  return is_last;
}

}  // namespace pp::cuda
