// SPDX-License-Identifier: BSL-1.0
//
// The loss of a tile of rows in shared memory, by the body of the loss's own kernel: the same teams
// of threads read rows of a tile and overwrite the rows by the gradients.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/narrow_mlp/geometry.hpp>
#include <pipe/backend/cuda/rows/losses.hpp>

namespace pp::cuda {

/// Rows of a tile in shared memory, of which the first is row `first` of the batch, as loss_memory.
template <class Slab>
struct loss_tile {
  Slab& rows;
  extent first;
  PIPE_HD PIPE_INLINE auto* at(extent row, int column) const {
    return rows.element + int(row - first) * Slab::stride + column;
  }
  template <int Count>
  PIPE_HD PIPE_INLINE void take(extent row, int column, float const (&v)[Count]) const {
    save<Count, memory_space::shared>(at(row, column), v);
  }
  PIPE_HD PIPE_INLINE void take_one(extent row, int column, float v) const {
    auto* const to = at(row, column);
    *to = std::remove_reference_t<decltype(*to)>(v);
  }
};

template <class Body>
constexpr auto only_body(kernel_list<Body>) {
  return std::type_identity<Body>{};
}

/// The loss of group G on tiles in a block of narrow layers; -1: no loss and no state.
///
/// law: the same bits as the loss's own kernel: the order of a row's sums depends on the row's
///      width alone
template <class P, int G>
struct narrow_tile_loss {
  using body = typename decltype(only_body(
      typename kernel_of<group_of<P, G>::value.anchor>::template list<P, G>{}))::type;
  using team = typename body::team;
  static_assert(team::size <= warp_size, "a team needs no shared memory");
  using state = typename body::state;

  /// Computes the losses of rows [row, row + Rows), as far as before `end`, and overwrites the rows
  /// of the tile by their gradients. Is called after a barrier, and ends with a barrier.
  template <int Rows, class Block, class Slab>
  PIPE_HD PIPE_INLINE static void run(Block& block, arguments const& a, Slab& tile, extent row,
                                      extent end) {
    constexpr int together = narrow_threads / team::size;
    extent const last = row + Rows < end ? row + Rows : end;
#ifdef __CUDA_ARCH__
#pragma unroll 1  // so that a thread needs fewer registers
#endif
    for (extent first = row; first < last; first += together)
      body::run_rows(block, a, loss_tile<Slab>{tile, row}, first, last);
    block.phase([](int, typename Block::state&) {});
  }
};
template <class P>
struct narrow_tile_loss<P, -1> {
  struct state {};
};

}  // namespace pp::cuda
