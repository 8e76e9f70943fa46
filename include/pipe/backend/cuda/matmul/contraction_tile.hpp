// SPDX-License-Identifier: BSL-1.0
//
// A tile of a matrix product, computed by a block of threads on tensor cores. Each warp multiplies
// its piece of a slab of a and b while the next slabs are copied to shared memory. Then the sums of
// the tile pass through shared memory once, so that the epilogue reads and writes whole rows, 16
// bytes at a time.
#pragma once

#include <pipe/backend/cuda/matmul/contraction_group.hpp>
#include <pipe/backend/cuda/matmul/contraction_slab.hpp>
#include <pipe/backend/cuda/matmul/contraction_warp.hpp>
#include <pipe/backend/cuda/matmul/slab_turns.hpp>
#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/core/warp.hpp>

namespace pp::cuda {

/// The tiles of c = a b. With several splits, blocks write partial sums, which the last block of a
/// tile adds, or split_sums_kernel if they are too many for one block.
///
/// shape: a (M, K), b (K, N) -> c (M, N), with one more row for the gradient of a bias; with
///        several splits also sums (splits, rows of c, N) in the workspace
/// law:   splits take slabs of k in turn; an element is the sum over ascending k within a split, in
///        tiles of the tensor core's depth, then over ascending splits: the order depends on M, N,
///        K and the format only, and the place of a k in the sum on its number alone
/// work:  a block has a tile of Plan.rows x Plan.columns, a warp a piece of the tile in registers;
///        all threads copy slabs of a and b, up to Plan.stages slabs ahead, and a warp loads the
///        operands of half a slab while it multiplies those of the half before
/// cost:  2 * M * N * K FLOPs; each element of a is read N / Plan.columns times, of b M / Plan.rows
///        times
template <class P, int G, tile_plan Plan, class Product = contraction<P, G>>
struct contraction_tiles {
  using T = typename P::element;
  using product = Product;
  static constexpr product_shape shape = product::shape;
  static constexpr product_format format = product::format;
  static constexpr operand_format operands = operands_of(format);
  using turns = slab_turns<Plan>;
  static constexpr bool split = Plan.splits > 1, sums_bias = product::sums_bias;
  /// With Lengths: whether rows of c, or those that are summed, may be absent.
  using of_rows = launch_rows<P, G>;
  static constexpr bool rows_vary = of_rows::vary && !product::makes_weight,
                        slabs_vary = of_rows::vary && product::makes_weight;

  static constexpr extent tile_rows = (shape.rows + Plan.rows - 1) / Plan.rows;
  /// Tiles in a row of one product; each of several products has tiles of its own.
  static constexpr extent product_columns = (shape.columns + Plan.columns - 1) / Plan.columns;
  static constexpr extent tile_columns = product_columns * product::products;
  static constexpr extent columns = shape.columns * product::products;  // columns of c
  static constexpr extent slabs = Plan.slabs(shape);
  static constexpr int threads = Plan.threads(), resident = Plan.resident();
  static constexpr extent blocks = tile_rows * tile_columns * Plan.splits;
  /// Whether the last block of a tile adds the splits. For one block, half a megabyte takes as long
  /// as split_sums_kernel takes for all tiles.
  static constexpr bool adds_splits = split && tile_rows * tile_columns <= most_tickets &&
                                      Plan.splits * Plan.rows * Plan.columns <= 1 << 17;
  static constexpr extent partial_rows = shape.rows + (sums_bias ? 1 : 0);
  static constexpr long workspace_bytes =
      product::left_bytes +
      (split ? long(partial_rows * columns) * Plan.splits * long(sizeof(float)) : 0);

  /// The number of small tiles of a warp, each of 16 rows and 8 columns, and their depth.
  static constexpr int down = Plan.warp_rows / 16, across = Plan.warp_columns / 8,
                       inner = tile<operands>::inner;
  static_assert(across % 2 == 0 && Plan.depth == 2 * inner);
  static_assert(shape.rows < 0x7fffff00 && shape.columns < 0x7fffff00);

  struct state {
    float sums[down][across][4];
    warp_operands<across, down> operands[2];  // of both halves of a slab
    float columns[4];                         // sums of one column of b
    T const *left, *right;                    // the thread's first piece of the first slab
  };
  struct stage {
    using left_slab = operand_slab<T, Plan.rows, Plan.depth, product::makes_weight>;
    using right_slab = operand_slab<T, Plan.columns, Plan.depth, !product::transposes_right>;
    left_slab left;
    right_slab right;
  };
  /// The layout of a row of sums in shared memory, without bank conflicts between threads that
  /// write two sums of a row or read four. Where a thread takes eight sums, the halves of all
  /// eights lie apart.
  static constexpr int sums_stride = Plan.columns + 8, apart = Plan.columns / 2 + 4;
  PIPE_HD static PIPE_INLINE int place_of_sum(int column) {
    return product::each == 8 ? column / 8 * 4 + column / 4 % 2 * apart + column % 4 : column;
  }
  template <int Count>
  PIPE_HD static PIPE_INLINE void load_sums(float const* row, int column, float (&v)[Count]) {
    if constexpr (Count == 8) {
      float half[2][4];
      PIPE_UNROLL
      for (int i = 0; i < 2; ++i) load<4>(row + place_of_sum(column) + i * apart, half[i]);
      PIPE_UNROLL
      for (int i = 0; i < 8; ++i) v[i] = half[i / 4][i % 4];
    } else {
      load<Count>(row + column, v);
    }
  }
  union shared {
    stage stages[Plan.stages];
    float sums[Plan.rows * sums_stride];
    bool is_last;
  };

  /// The end of the rows of c, without the gradient of a bias.
  PIPE_HD PIPE_INLINE static extent end_row([[maybe_unused]] arguments const& a) {
    if constexpr (rows_vary) return of_rows::end(a);
    return shape.rows;
  }

  /// The tile of a block, and the slabs that the block sums.
  struct place {
    int row, column, part, first_slab, slabs;
    /// The column of c behind the last column of the tile's product.
    PIPE_HD PIPE_INLINE extent end() const {
      return product::products == 1 ? extent(shape.columns)
                                    : (column / shape.columns + 1) * shape.columns;
    }
  };
  /// The place of a block. Consecutive blocks, which run at the same time, go down bands of eight
  /// rows of tiles, so that they share rows of a and columns of b in L2.
  PIPE_HD PIPE_INLINE static place place_of(extent block) {
    constexpr unsigned tiles = unsigned(tile_rows * tile_columns), band = 8,
                       band_tiles = band * unsigned(tile_columns);
    unsigned const part = split ? unsigned(block) / tiles : 0,
                   index = split ? unsigned(block) % tiles : unsigned(block);
    unsigned const first = index / band_tiles * band, rest = unsigned(tile_rows) - first,
                   high = rest < band ? rest : band;
    int const right = int(index % band_tiles / high);
    int const column = product::products == 1 ? right * Plan.columns
                                              : right / int(product_columns) * int(shape.columns) +
                                                    right % int(product_columns) * Plan.columns;
    return {int(first + index % band_tiles % high) * Plan.rows, column, int(part),
            int(part) * Plan.together, turns::before(int(part), int(slabs))};
  }
  /// The number of the tile in its row of tiles.
  PIPE_HD PIPE_INLINE static int tile_column(place const& at) {
    constexpr int width = int(shape.columns);
    return product::products == 1
               ? at.column / Plan.columns
               : at.column / width * int(product_columns) + at.column % width / Plan.columns;
  }
  /// The first row, and column, of a warp's piece of the tile.
  PIPE_HD PIPE_INLINE static int warp_row(int thread) {
    return thread / warp_size / (Plan.columns / Plan.warp_columns) * Plan.warp_rows;
  }
  PIPE_HD PIPE_INLINE static int warp_column(int thread) {
    return thread / warp_size % (Plan.columns / Plan.warp_columns) * Plan.warp_columns;
  }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    place at = place_of(block.position());
    if constexpr (rows_vary)
      if (at.row >= end_row(a)) return;
    std::conditional_t<slabs_vary, present_slabs<P, G, Plan>, turns> next(a, at.part);
    if constexpr (slabs_vary) at.slabs = next.count(at.slabs), at.first_slab = 0;
    hold(at.slabs);
    extent const first_k = extent(at.first_slab) * Plan.depth;
    block.part([&](int thread, state& mine) {
      if constexpr (product::makes_weight)
        mine.left = stage::left_slab::template first_of<int(shape.rows), threads>(
            thread, product::left(a), first_k, at.row);
      else
        mine.left = stage::left_slab::template first_of<int(shape.inner), threads>(
            thread, product::left(a), at.row, first_k);
      if constexpr (product::transposes_right)
        mine.right = stage::right_slab::template first_of<int(shape.inner), threads>(
            thread, product::right(a), at.column, first_k);
      else
        mine.right = stage::right_slab::template first_of<int(shape.columns), threads>(
            thread, product::right(a), first_k, at.column);
      hold(mine.left), hold(mine.right);
      clear(mine);
    });
    // Slabs behind the last one are zeros.
    auto const start = [&](int slab, stage& s) {
      unsigned const further = next.take(unsigned(slab));
      extent const k = extent(unsigned(at.first_slab) + further) * Plan.depth;
      bool const present = slab < at.slabs;
      block.part([&](int thread, state const& mine) {
        constexpr extent down = Plan.depth * (product::makes_weight ? shape.rows : 1),
                         along = Plan.depth * (product::transposes_right ? 1 : shape.columns);
        T const* const left = mine.left + further * down;
        T const* const right = mine.right + further * along;
        if constexpr (product::makes_weight)
          s.left.template copy<shape.inner, int(shape.rows), threads>(block, thread, left, k,
                                                                      at.row, present);
        else
          s.left.template copy<shape.rows, int(shape.inner), threads>(block, thread, left, at.row,
                                                                      k, present);
        if constexpr (product::transposes_right)
          s.right.template copy<shape.columns, int(shape.inner), threads>(block, thread, right,
                                                                          at.column, k, present);
        else
          s.right.template copy<shape.inner, int(shape.columns), threads>(block, thread, right, k,
                                                                          at.column, present);
      });
      commit_copies(block);
    };
    make_tile(block, a, at, start);
  }

  PIPE_HD PIPE_INLINE static void clear(state& mine) {
    PIPE_UNROLL
    for (float& sum : mine.columns) sum = 0;
    PIPE_UNROLL
    for (int j = 0; j < across; ++j) {
      PIPE_UNROLL
      for (int i = 0; i < down; ++i) {
        PIPE_UNROLL
        for (int c = 0; c < 4; ++c) mine.sums[i][j][c] = 0;
      }
    }
  }
  /// Computes the tile at a place; start(number, stage) starts the copies of a slab, in ascending
  /// order.
  template <class Block, class Start>
  PIPE_HD PIPE_INLINE static void make_tile(Block& block, arguments const& a, place const& at,
                                            Start start) {
    PIPE_UNROLL
    for (int slab = 0; slab + 1 < Plan.stages; ++slab) start(slab, block.shared().stages[slab]);
    if constexpr (!split)
      product::each_matrix_read(a, [&](auto const* matrix) { prefetch_tile(block, matrix, at); });
    await_copies<Plan.stages - 2>(block);
    stage *before = &block.shared().stages[Plan.stages - 1], *here = &block.shared().stages[0];
    load_half(block, *here, 0);
    for (int slab = 0; slab < at.slabs; ++slab) {
      stage* const next = &block.shared().stages[unsigned(slab + 1) % Plan.stages];
      if constexpr (sums_bias)
        if (at.row == 0) add_columns(block, *here);
      load_half(block, *here, 1);
      multiply(block, *here, 0);
      await_copies<Plan.stages - 3>(block);
      // The next slab overwrites the previous slab, which all threads have read.
      start(slab + Plan.stages - 1, *before);
      load_half(block, *next, 0);
      multiply(block, *here, 1);
      before = here, here = next;
    }
    await_copies<0>(block);
    if constexpr (sums_bias)
      if (at.row == 0) take_columns(block, a, at);
    take_tile(block, a, at);
    if constexpr (adds_splits) {
      unsigned* const ticket = a.tickets + at.row / Plan.rows * int(tile_columns) + tile_column(at);
      if (is_last_block(block, ticket, unsigned(Plan.splits), block.shared().is_last))
        add_tile(block, a, at);
    }
  }

  /// Prefetches a matrix that the epilogue reads, so that it is in L2 when the sums are complete.
  template <class U, class Block>
  PIPE_HD PIPE_INLINE static void prefetch_tile(Block& block, U const* matrix, place const& at) {
    constexpr int line = 128 / int(sizeof(U)), lines = (Plan.columns + line - 1) / line;
    block.part([&](int thread, state&) {
      PIPE_UNROLL
      for (int i = thread; i < Plan.rows * lines; i += threads) {
        int const row = at.row + i / lines, column = at.column + i % lines * line;
        if (row < shape.rows && column < at.end()) prefetch(matrix + row * columns + column);
      }
    });
  }

  /// Loads the first operands of half 0 or 1 of a slab: all right operands, and 16 rows of the
  /// left.
  template <class Block>
  PIPE_HD PIPE_INLINE static void load_half(Block& block, stage const& s, int half) {
    PIPE_UNROLL
    for (int j = 0; j < across; j += 2)
      s.right.template load_right<operands>(
          block, half * inner, [=](int thread) { return warp_column(thread) + 8 * j; },
          [=](state& mine) { return mine.operands[half].right + 2 * j; });
    load_rows(block, s, half, 0);
  }
  template <class Block>
  PIPE_HD PIPE_INLINE static void load_rows(Block& block, stage const& s, int half, int i) {
    s.left.template load_left<operands>(
        block, half * inner, [=](int thread) { return warp_row(thread) + 16 * i; },
        [=](state& mine) { return mine.operands[half].left[i]; });
  }
  /// columns += the rows of right in a slab: each thread has a column, as four sums, each of the k
  /// that one of the four threads with this column as an operand has.
  template <class Block>
  PIPE_HD PIPE_INLINE static void add_columns(Block& block, stage const& s) {
    block.part([&](int thread, state& mine) {
      if (Plan.columns < threads && thread >= Plan.columns) return;
#ifdef __CUDA_ARCH__
#pragma unroll 1  // a loop, so that tiles that sum no columns jump over little code
#endif
      for (int first = 0; first < Plan.depth; first += 8) {
        PIPE_UNROLL
        for (int k = 0; k < 8; ++k)
          mine.columns[k / (4 / int(sizeof(T))) % 4] +=
              float(s.right.element[s.right.place(first + k, thread)]);
      }
    });
  }
  /// sums += left * right for half a slab whose first operands are loaded.
  template <class Block>
  PIPE_HD PIPE_INLINE static void multiply(Block& block, stage const& s, int half) {
    auto const of = [=](state& mine) -> auto& { return mine.operands[half]; };
    round_right<format, across>(block, of);
    PIPE_UNROLL
    for (int i = 0; i < down; ++i) {
      if (i + 1 < down) load_rows(block, s, half, i + 1);
      multiply_row<format, across>(block, i, of,
                                   [=](state& mine, int j) { return mine.sums[i][j]; });
    }
  }

  /// The numbers that `take` reads from memory: none if there are splits. take() is called for
  /// complete elements of a row of c, of the gradient of a bias, or of a split.
  template <int Count>
  using before = std::conditional_t<split, nothing, typename product::template before<Count>>;
  template <int Count>
  PIPE_HD PIPE_INLINE static void fetch([[maybe_unused]] arguments const& a,
                                        [[maybe_unused]] extent row, [[maybe_unused]] int column,
                                        [[maybe_unused]] before<Count>& z) {
    if constexpr (!split) product::template fetch<Count>(a, row, column, z);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, place const& at, extent row, int column,
                                       float (&v)[Count], before<Count> const& z) {
    if constexpr (split)
      save<Count>(partial_sums(a) + (extent(at.part) * partial_rows + row) * columns + column, v);
    else
      product::template take<Count>(a, row, column, v, z);
  }
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, place const& at, extent row, int column,
                                       float (&v)[Count]) {
    before<Count> z;
    fetch<Count>(a, row, column, z);
    take<Count>(a, at, row, column, v, z);
  }
  PIPE_HD PIPE_INLINE static float* partial_sums(arguments const& a) {
    return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + product::left_bytes);
  }

  /// Adds the splits of elements, which are all in the workspace, and takes the sums: eight
  /// accesses, or 32 numbers, are loaded together.
  template <int Count>
  PIPE_HD PIPE_INLINE static void add_splits(arguments const& a, extent row, int column) {
    constexpr int most = Count < 4 ? 32 / Count : 8,
                  together = Plan.splits < most ? Plan.splits : most;
    float const* const first = partial_sums(a) + row * columns + column;
    float v[Count] = {};
    for (int begin = 0; begin < Plan.splits; begin += together) {
      PIPE_UNROLL
      for (int i = 0; i < together; ++i) {
        if (begin + i >= Plan.splits) break;
        float x[Count];
        load<Count>(first + (begin + i) * partial_rows * columns, x);
        PIPE_UNROLL
        for (int k = 0; k < Count; ++k) v[k] += x[k];
      }
    }
    product::template take<Count>(a, row, column, v);
  }
  /// Adds the splits of a tile, and of its part of the gradient of the bias.
  template <class Block>
  PIPE_HD PIPE_INLINE static void add_tile(Block& block, arguments const& a, place const& at) {
    constexpr int each = product::each, pieces = Plan.columns / each;
    extent const end = end_row(a);
    block.part([&](int thread, state&) {
      int const rows = Plan.rows + (sums_bias && at.row == 0);  // the bias's row is the last of c
      for (int piece = thread; piece < rows * pieces; piece += threads) {
        int const r = piece / pieces, column = at.column + piece % pieces * each;
        extent const row = r < Plan.rows ? at.row + r : extent(shape.rows);
        if ((row < end || r == Plan.rows) && column < at.end()) add_splits<each>(a, row, column);
      }
    });
  }

  /// Takes the gradient of the bias: the sums of b's columns.
  template <class Block>
  PIPE_HD PIPE_INLINE static void take_columns(Block& block, arguments const& a, place const& at) {
    block.part([&](int thread, state& mine) {
      int const column = at.column + thread;
      if (thread >= Plan.columns || column >= at.end()) return;
      float const* const sum = mine.columns;
      float v[1] = {(sum[0] + sum[2]) + (sum[1] + sum[3])};
      take<1>(a, at, shape.rows, column, v);
    });
  }
  /// Takes the sums of the tile: from the layout of tensor cores they go through shared memory, in
  /// place of the slabs, to rows, in accesses of up to 16 bytes. The loads of the epilogue for
  /// several accesses are issued before the first store, since no load may pass a store.
  template <class Block>
  PIPE_HD PIPE_INLINE static void take_tile(Block& block, arguments const& a, place const& at) {
    constexpr int each = product::each, pieces = Plan.columns / each, all = Plan.rows * pieces,
                  of_thread = (all + threads - 1) / threads,
                  together = of_thread < 4 ? of_thread : 4;
    block.phase([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < down; ++i) {
        PIPE_UNROLL
        for (int j = 0; j < across; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 4; c += 2) {
            tile_place const p = place_in_c(thread % warp_size, c);
            int const row = warp_row(thread) + 16 * i + p.row,
                      column = warp_column(thread) + 8 * j + p.column;
            float const two[2] = {mine.sums[i][j][c], mine.sums[i][j][c + 1]};
            save<2, memory_space::shared>(
                block.shared().sums + row * sums_stride + place_of_sum(column), two);
          }
        }
      }
    });
    extent const end = end_row(a);
    block.part([&](int thread, state&) {
      for (int first = thread; first < all; first += together * threads) {
        auto const each_piece = [&](auto f) {
          PIPE_UNROLL
          for (int i = 0; i < together; ++i) {
            int const piece = first + i * threads, r = piece / pieces, c = piece % pieces * each;
            if ((all % (together * threads) == 0 || piece < all) && at.row + r < end &&
                at.column + c < at.end())
              f(i, r, c);
          }
        };
        before<each> z[together];
        each_piece([&](int i, int r, int c) { fetch<each>(a, at.row + r, at.column + c, z[i]); });
        each_piece([&](int i, int r, int c) {
          float v[each];
          load_sums(block.shared().sums + r * sums_stride, c, v);
          take<each>(a, at, at.row + r, at.column + c, v, z[i]);
        });
      }
    });
  }
};

}  // namespace pp::cuda
