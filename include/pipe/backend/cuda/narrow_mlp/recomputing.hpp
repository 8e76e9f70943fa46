// SPDX-License-Identifier: BSL-1.0
//
// A chain of narrow layers backward that recomputes the inputs of its layers: a block computes a
// tile of rows forward through the layers and then backward. The results that backward reads stay
// in shared memory, each layer's input until the input's gradient overwrites the input. Both
// directions read the same weights in shared memory, in the order of memory. If a step runs
// backward directly after forward, the chain also has the last layer and the loss: then forward
// computes none of these layers.
#pragma once

#include <pipe/backend/cuda/narrow_mlp/gradients.hpp>
#include <pipe/backend/cuda/narrow_mlp/tile_loss.hpp>

namespace pp::cuda {

/// The index of the result that a forward group keeps for the derivative beside its finished rows;
/// -1: none. Each layer but the last has at most one such result.
template <class P, int G>
inline constexpr int kept_index = [] {
  constexpr detail::group g = group_of<P, G>::value;
  constexpr int handed = handed_index<P, G>;
  int index = g.out[0] == handed ? -1 : g.out[0];
  for (detail::pointwise_op const& s : g.epilogue)
    if (s.store >= 0 && s.store != handed) index = s.store;
  return index;
}();
/// The op of an epilogue that multiplies by a derivative; -1: none.
template <class P, int G>
inline constexpr int derivative_op = [] {
  constexpr detail::group g = group_of<P, G>::value;
  int found = -1;
  for (int i = 0; i < int(g.epilogue.size()); ++i)
    if (g.epilogue.items[i].kind == op_kind::map_gradient) found = i;
  return found;
}();

/// Stores the kept result of a layer, operand Kept, in shared memory.
template <int Kept, class T>
struct recomputed_stores {
  T* to;
  template <int Index, class, int Count>
  PIPE_HD PIPE_INLINE void take(arguments const&, extent, float const (&v)[Count]) const {
    if constexpr (Index == Kept) save<Count, memory_space::shared>(to, v);
  }
};

/// The weights of layers K in shared memory, in the order of memory.
template <class P, int Rows, class Numbers, int... F>
struct narrow_layer_weights;
template <class P, int Rows, int... K, int... F>
struct narrow_layer_weights<P, Rows, std::integer_sequence<int, K...>, F...>
    : numbered_slab<K, typename narrow_layer<P, F, Rows, 2>::weights>... {};

/// The kept results of a tile, beside the layers' inputs; if Count is 0, no memory.
template <class T, int Rows, int Columns, int Count>
struct narrow_kept_rows {
  narrow_rows<T, Rows, Columns> kept[Count];
};
template <class T, int Rows, int Columns>
struct narrow_kept_rows<T, Rows, Columns, 0> {};

template <class P, int Rows, unsigned Dropped, int Loss, class Forward, int... G>
struct narrow_recomputing_kernel;

/// The gradients of a chain of narrow layers, launches G, whose inputs but the first one are
/// recomputed by the launches F of forward: x_(k+1) = epilogue_k(x_k w_k), then dx_k =
/// epilogue(dy_k w_k^T), which is dy_(k - 1), and dw_k = x_k^T dy_k, db_k = sum over rows of dy_k.
/// Loss: the group of the loss, if F also has the last layer: then dy of the last layer is the
/// gradient of the loss, computed in shared memory; or -1.
///
/// shape: dy of the last layer (rows, columns), x_0 (rows, inner_0), w_k (inner_k, columns_k) ->
///        dw_k (inner_k, columns_k) or its splits, db_k, and every dx that is read outside
/// law:   the same bits as the groups' own kernels
/// work:  a block has the rows of one split of the weights' sums; for each tile of Rows rows the
///        block computes all layers forward and backward, while x_0 and dy of the next tile are
///        copied
/// cost:  reads x_0 and dy once and writes the gradients; bounded by shared memory and registers,
///        which hold all weights, all inputs of a tile, and all sums
template <class P, int Rows, unsigned Dropped, int Loss, int... F, int... G>
struct narrow_recomputing_kernel<P, Rows, Dropped, Loss, std::integer_sequence<int, F...>, G...> {
  static constexpr bool has_loss = Loss >= 0;
  static constexpr int forwards = sizeof...(F), launches = sizeof...(G),
                       recomputed = forwards + has_loss, layers = forwards + !has_loss,
                       last = layers - 1;
  using loss = narrow_tile_loss<P, Loss>;
  using gradients = narrow_gradients<P, Rows, recomputed, G...>;
  using levels = typename gradients::levels;
  static_assert(levels::count == layers);
  using T = typename P::element;
  using arguments = chain_arguments<recomputed + launches>;
  using launch_numbers = std::make_integer_sequence<int, launches>;
  using forward_numbers = std::make_integer_sequence<int, forwards>;

  /// Layer K forward, and backward: the gradients of its weight and of its input, launches of G.
  template <int K>
  using forward = narrow_layer<P, launch_at<K, F...>, Rows, 2>;
  template <int K>
  static constexpr int weight_of = levels::template at<layers - 1 - K>.weight;
  template <int K>
  static constexpr int input_of = levels::template at<layers - 1 - K>.input;
  template <int K>
  using backward = narrow_layer<P, launch_at<input_of<K>, G...>, Rows, 2>;
  static constexpr bool has_input_gradient = input_of<0> >= 0;

  template <int H>
  static constexpr int sums_of = group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient
                                     ? 0
                                     : narrow_layer<P, H, Rows, 2>::product::sums;
  template <int H>
  static constexpr int across_of = group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient
                                       ? narrow_weight_sums<P, H>::product::across
                                       : narrow_layer<P, H, Rows, 2>::product::across;
  /// The number of kept results of the layers before K.
  template <int K>
  PIPE_HD static constexpr int kept_before() {
    return []<int... Is>(std::integer_sequence<int, Is...>) {
      return (0 + ... + (kept_index<P, launch_at<Is, F...>> >= 0));
    }(std::make_integer_sequence<int, K>{});
  }

  struct state : loss::state {
    float sums[gradients::template most<sums_of<F>..., sums_of<G>...>()][4];
    typename gradients::kept_sums kept;
    warp_operands<gradients::template most<across_of<F>..., across_of<G>...>()> operands;
  };
  using tile = narrow_rows<T, Rows, gradients::widest_x>;
  static constexpr int tiles = narrow_tiles(layers);
  using last_gradient = narrow_rows<T, Rows, gradients::width>;
  /// The weights of the last layer, if the forward layers F do not have it.
  using last_weights = std::conditional_t<has_loss, nothing, typename backward<last>::weights>;
  struct shared : narrow_kept_rows<T, Rows, gradients::widest_x, kept_before<last>()> {
    last_gradient input;
    tile x[tiles];
    narrow_layer_weights<P, Rows, forward_numbers, F...> weights;
    [[no_unique_address]] last_weights of_last;
  };

  static constexpr int threads = narrow_threads, resident = 1;
  PIPE_HD static extent blocks(arguments const&) { return gradients::blocks_in_all; }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const first = gradients::first_row(block.position()), end = gradients::rows;
    block.part([&](int, state& mine) { mine.kept.clear(); });
    start_weights(block, a, forward_numbers{});
    if constexpr (!has_loss) gradients::start_dy(block, block.shared().input, a, first, end);
    start_x(block, a, first, end, 0);
    int parity = 0;
    for (extent row = first; row < end; row = gradients::next_row(row), parity ^= 1) {
      await_copies<0>(block);
      run_forward(block, a, row, end, parity, forward_numbers{});
      if constexpr (has_loss)
        loss::template run<Rows>(block, a.of[forwards], block.shared().input, row, end);
      run_backward(block, a, row, end, parity, std::make_integer_sequence<int, layers>{});
    }
    await_copies<0>(block);
    gradients::take_weights(block, a, launch_numbers{});
  }

 private:
  /// The input of layer k: the order of tiles is reversed for every other tile, so that the first
  /// layer's input of the next rows overwrites the last layer's input.
  template <class Block>
  PIPE_HD PIPE_INLINE static tile& x_of(Block& block, int k, int parity) {
    return block.shared().x[parity == 0 ? k : tiles - 1 - k];
  }
  /// Starts the copies of all layers' weights; the last layer's for its input's gradient.
  template <class Block, int... K>
  PIPE_HD PIPE_INLINE static void start_weights(Block& block, arguments const& a,
                                                std::integer_sequence<int, K...>) {
    (forward<K>::copy(block, a.of[K], slab_of<K>(block.shared().weights)), ...);
    if constexpr (!has_loss)
      backward<last>::copy(block, a.of[recomputed + input_of<last>], block.shared().of_last);
  }
  /// Starts the copy of the first layer's input, of rows [row, end).
  template <class Block>
  PIPE_HD PIPE_INLINE static void start_x(Block& block, arguments const& a, extent row, extent end,
                                          int parity) {
    gradients::template start_x<weight_of<0>>(block, x_of(block, 0, parity), a, row, end);
    commit_copies(block);
  }

  /// Recomputes the inputs of all layers but the first, for a tile of rows.
  template <class Block, int... K>
  PIPE_HD PIPE_INLINE static void run_forward(Block& block, arguments const& a, extent row,
                                              extent end, int parity,
                                              std::integer_sequence<int, K...>) {
    (run_layer<K>(block, a, row, end, parity), ...);
  }
  /// Computes layer K: the result is the next layer's input, or the input of the loss; a further
  /// result that the layer's derivative reads is kept.
  template <int K, class Block>
  PIPE_HD PIPE_INLINE static void run_layer(Block& block, arguments const& a, extent row,
                                            extent end, int parity) {
    layer_to<K>(block, a, row, end, parity, [&]() -> auto& {
      if constexpr (K == last)
        return block.shared().input;
      else
        return x_of(block, K + 1, parity);
    });
  }
  template <int K, class Block, class Next>
  PIPE_HD PIPE_INLINE static void layer_to(Block& block, arguments const& a, extent row, extent end,
                                           int parity, Next next) {
    using layer = forward<K>;
    using seconds = typename layer::seconds;
    constexpr int g = launch_at<K, F...>, kept = kept_index<P, g>;
    layer::multiply(block, x_of(block, K, parity), slab_of<K>(block.shared().weights));
    block.phase([&](int thread, state& mine) {
      layer::template finish_each<true, gradients::is_whole>(
          thread, mine, row, end, next(),
          [&](int r, int column, seconds& z) { layer::ops::fetch(a.of[K], row + r, column, z); },
          [&](int r, int column, float(&some)[layer::together], seconds const& z) {
            T* to = nullptr;
            if constexpr (kept >= 0)
              to = block.shared().kept[kept_before<K>()].element + r * tile::stride + column;
            finish<P, g>(a.of[K], row + r, column, some, z, recomputed_stores<kept, T>{to});
          });
    });
  }

  /// Gradients of a tile of rows, from the last layer to the first.
  template <class Block, int... L>
  PIPE_HD PIPE_INLINE static void run_backward(Block& block, arguments const& a, extent row,
                                               extent end, int parity,
                                               std::integer_sequence<int, L...>) {
    (run_level<L>(block, a, row, end, parity), ...);
  }
  /// Level L, the gradients of layer layers - 1 - L. Memory that no later level reads is filled for
  /// the next tile meanwhile.
  template <int L, class Block>
  PIPE_HD PIPE_INLINE static void run_level(Block& block, arguments const& a, extent row,
                                            extent end, int parity) {
    constexpr int k = layers - 1 - L;
    if constexpr (L > 0) block.phase([](int, state&) {});  // this level's dy is complete
    if (extent const next = gradients::next_row(row); next < end) {
      // read by earlier levels: `input` by level 0, the last layer's input gradient by level 1
      if constexpr (L == 1 && !has_loss)
        gradients::start_dy(block, block.shared().input, a, next, end);
      if constexpr (L == (layers > 2 ? 2 : 1)) start_x(block, a, next, end, parity ^ 1);
    }
    if constexpr (L == 0)
      run_gradients<k>(block, a, block.shared().input, row, end, parity);
    else
      run_gradients<k>(block, a, x_of(block, k + 1, parity), row, end, parity);
  }
  /// Both gradients of layer K: the weight's gradient first, since the input's gradient overwrites
  /// the layer's input.
  template <int K, class Block, class Dy>
  PIPE_HD PIPE_INLINE static void run_gradients(Block& block, arguments const& a, Dy const& dy,
                                                extent row, extent end, int parity) {
    constexpr int b = input_of<K>;
    gradients::template add<weight_of<K>>(block, x_of(block, K, parity), dy, row, end);
    if constexpr (K == forwards) {
      backward<K>::multiply(block, dy, block.shared().of_last);
      finish_gradient<K>(block, a, row, end, parity);
    } else if constexpr (b >= 0) {
      backward<K>::multiply(block, dy, slab_of<K>(block.shared().weights));
      finish_gradient<K>(block, a, row, end, parity);
    }
  }
  /// The gradient of layer K's input overwrites the input; the first layer's gradient is only
  /// stored in memory.
  template <int K, class Block>
  PIPE_HD PIPE_INLINE static void finish_gradient(Block& block, arguments const& a, extent row,
                                                  extent end, int parity) {
    constexpr int b = input_of<K>, g = launch_at<b, G...>;
    constexpr bool dropped = (Dropped >> (recomputed + b) & 1) != 0;
    cuda::arguments const& of = a.of[recomputed + b];
    using layer = backward<K>;
    if constexpr (K == 0) {
      block.part([&](int thread, state& mine) {
        layer::template finish_rows<false, gradients::is_whole, dropped>(of, thread, mine, row, end,
                                                                         x_of(block, K, parity));
      });
    } else {
      using seconds = typename layer::seconds;
      constexpr int derived = derivative_op<P, g>, kept = kept_index<P, launch_at<K - 1, F...>>;
      block.phase([](int, state&) {});  // all threads have read the layer's input
      block.part([&](int thread, state& mine) {
        tile& x = x_of(block, K, parity);
        T const* from = x.element;
        if constexpr (kept >= 0) from = block.shared().kept[kept_before<K - 1>()].element;
        layer::template finish_each<true, gradients::is_whole>(
            thread, mine, row, end, x,
            [&](int r, int column, seconds& z) {
              layer::ops::template fetch<layer::together, derived>(of, row + r, column, z);
              if constexpr (derived >= 0) z.of[derived].load(from + r * tile::stride + column);
            },
            [&](int r, int column, float(&some)[layer::together], seconds const& z) {
              finish<P, g>(of, row + r, column, some, z,
                           narrow_stores<handed_index<P, g>, dropped>{});
            });
      });
    }
  }
};

}  // namespace pp::cuda
