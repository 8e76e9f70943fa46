// SPDX-License-Identifier: BSL-1.0
//
// Blocks of one launch that combine their results. Each block writes its part to memory and takes a
// ticket; the block that takes the last ticket reads all parts and does the rest of the work, in an
// order that does not depend on which block it is. This saves a second launch, and no bit depends
// on the order of blocks.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// The number of a rank's tickets. All are zero between launches.
inline constexpr int most_tickets = 1024;

/// Takes a ticket: returns how many blocks have taken this ticket before; the last of `count`
/// blocks sets it to 0 again. Writes of earlier blocks are visible to this block, and its writes to
/// later blocks.
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

/// Whether a block is the last of `count` blocks to take this ticket; then all writes of the others
/// before this call are visible to it. is_last: a bool in the block's shared memory.
///
/// law:   true in exactly one of the blocks
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
