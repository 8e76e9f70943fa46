// SPDX-License-Identifier: BSL-1.0
//
// A chain of narrow layers forward: a block has the weights of all layers in shared memory, and
// computes all layers for one tile of rows after the other, while the next tile is copied. Results
// that have a place in memory are stored, but not read again.
#pragma once

#include <pipe/backend/cuda/narrow_mlp/tile.hpp>

namespace pp::cuda {

template <class P, int Rows, class Numbers, int... G>
struct narrow_forward_weights;
template <class P, int Rows, int... Is, int... G>
struct narrow_forward_weights<P, Rows, std::integer_sequence<int, Is...>, G...>
    : numbered_slab<Is, typename narrow_layer<P, G, Rows>::weights>... {};

/// A chain of narrow layers: x_1 = epilogue_0(x_0 w_0), x_2 = epilogue_1(x_1 w_1), and so on, for
/// groups G of P.
///
/// shape: x_0 (rows, inner_0), w_i (inner_i, columns_i), inner_(i + 1) = columns_i <= 128 -> every
///        result that is read outside the chain
/// law:   the same bits as the groups' own kernels
/// work:  a block keeps all weights in shared memory and computes all layers for a tile of Rows
///        rows; the next tile is copied meanwhile
/// cost:  reads x_0 and writes the stored results once; weights are read once per block; one launch
///        instead of launches of small layers, whose overhead would dominate
template <class P, int Rows, unsigned Dropped, int... G>
struct narrow_forward_kernel {
  static constexpr int layers = sizeof...(G);
  using T = typename P::element;
  using arguments = chain_arguments<layers>;
  template <int Index>
  using layer = narrow_layer<P, launch_at<Index, G...>, Rows>;
  using weights = narrow_forward_weights<P, Rows, std::make_integer_sequence<int, layers>, G...>;

  template <int... N>
  static constexpr int most(std::integer_sequence<int, N...>) {
    int m = 0;
    ((m = N > m ? N : m), ...);
    return m;
  }
  static constexpr int widest =
      most(std::integer_sequence<
           int, group_of<P, G>::value.attributes.contraction().inner...>{});  // the last one's
                                                                              // result is no tile
  static constexpr int sums =
      most(std::integer_sequence<int, narrow_layer<P, G, Rows>::product::sums...>{});
  static constexpr int across =
      most(std::integer_sequence<int, narrow_layer<P, G, Rows>::product::across...>{});

  struct state {
    float sums[narrow_forward_kernel::sums][4];
    warp_operands<narrow_forward_kernel::across> operands;
  };
  struct shared {
    narrow_rows<T, Rows, layer<0>::inner> input;
    narrow_rows<T, Rows, widest> tile;
    narrow_forward_kernel::weights weights;
  };

  static constexpr extent rows = contraction<P, launch_at<0, G...>>::shape.rows;
  static constexpr extent tiles = (rows + Rows - 1) / Rows,
                          tiles_each = (tiles + narrow_blocks - 1) / narrow_blocks;
  static constexpr int threads = narrow_threads,
                       resident = 2 * sizeof(shared) <= 220 * 1024 ? 2 : 1;
  static constexpr bool is_whole = rows % Rows == 0;  // no tile has rows beyond the end
  static constexpr extent blocks_in_all = (tiles + tiles_each - 1) / tiles_each;
  PIPE_HD static extent blocks(arguments const&) { return blocks_in_all; }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const first = block.position() * tiles_each * Rows,
                 end = first + tiles_each * Rows < rows ? first + tiles_each * Rows : rows;
    start_weights(block, a, std::make_integer_sequence<int, layers>{});
    start_input(block, a, first, end);
    for (extent row = first; row < end; row += Rows) {
      await_copies<0>(block);
      run_layers(block, a, row, end, std::make_integer_sequence<int, layers>{});
    }
    await_copies<0>(block);
  }

 private:
  template <class Block, int... Is>
  PIPE_HD PIPE_INLINE static void start_weights(Block& block, arguments const& a,
                                                std::integer_sequence<int, Is...>) {
    (layer<Is>::copy(block, a.of[Is], slab_of<Is>(block.shared().weights)), ...);
  }
  template <class Block>
  PIPE_HD PIPE_INLINE static void start_input(Block& block, arguments const& a, extent row,
                                              extent end) {
    copy_rows<layer<0>::inner>(block, block.shared().input,
                               contraction<P, launch_at<0, G...>>::left(a.of[0]), row, end);
    commit_copies(block);
  }
  template <class Block, int... Is>
  PIPE_HD PIPE_INLINE static void run_layers(Block& block, arguments const& a, extent row,
                                             extent end, std::integer_sequence<int, Is...>) {
    (run_layer<Is>(block, a, row, end), ...);
  }
  template <int Index, class Block>
  PIPE_HD PIPE_INLINE static void run_layer(Block& block, arguments const& a, extent row,
                                            extent end) {
    if constexpr (Index == 0)
      layer<Index>::multiply(block, block.shared().input, slab_of<Index>(block.shared().weights));
    else
      layer<Index>::multiply(block, block.shared().tile, slab_of<Index>(block.shared().weights));
    auto const finish_it = [&](int thread, state& mine) {
      layer<Index>::template finish_rows<(Index + 1 < layers), is_whole,
                                         (Dropped >> Index & 1) != 0>(
          a.of[Index], thread, mine, row, end, block.shared().tile);
    };
    if constexpr (Index + 1 < layers) {
      if constexpr (Index > 0) block.phase([](int, state&) {});  // the tile has been read
      block.phase(finish_it);
      if constexpr (Index == 0)
        if (row + Rows < end) start_input(block, a, row + Rows, end);
    } else {
      block.part(finish_it);  // the next tile's first await is a barrier
    }
  }
};

}  // namespace pp::cuda
