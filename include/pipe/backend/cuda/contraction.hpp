// SPDX-License-Identifier: BSL-1.0
//
// Matrix products on tensor cores: a matmul, and the gradients of its input and of its weight. All three are c = a b with b[K, N] in rows;
// a of a weight's gradient is read transposed. A block computes one tile of c while the next slabs of a and b are on their way into shared
// memory, then passes the tile's sums through shared memory once, so that the epilogue reads and writes whole rows, 16 bytes at a time.
//
// Chains before a matmul run as a kernel of their own that writes the rows of a: each row is read by as many blocks as c has tiles in a
// row, and none of them should compute it again.
//
// law: an element of c is summed in an order that depends on M, N, K and the product's format only
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/chain.hpp>
#include <pipe/backend/cuda/contraction_plan.hpp>
#include <pipe/backend/cuda/contraction_slab.hpp>
#include <pipe/backend/cuda/warp.hpp>
#include <pipe/base/bytes.hpp>

namespace pp::cuda {

template <class... Bodies>
struct bodies;

/// The product of group G: what it reads and where it goes.
template <class P, int G>
struct contraction {
  using T = typename P::element;
  static constexpr op_kind anchor = group_of<P, G>::value.anchor;
  static constexpr bool makes_weight = anchor == op_kind::matmul_weight_gradient;
  static constexpr bool has_prologue = group_of<P, G>::value.prologue.size() > 0;
  /// The bias's gradient is one more row of the weight's: that of an x which is always 1.
  static constexpr bool sums_bias = makes_weight && has_prologue, makes_left = !makes_weight && has_prologue;
  static constexpr product_format format = product_of<P>();

  static constexpr product_shape shape_of(group const& g) {
    extent const rows = extent(g.rows) * P::samples;
    return makes_weight ? product_shape{g.inner, g.columns, rows} : product_shape{rows, g.columns, g.inner};
  }
  static constexpr product_shape shape = shape_of(group_of<P, G>::value);
  /// What a prologue writes last.
  static constexpr int stored =
      has_prologue
          ? group_of<P, G>::value.prologue.items[has_prologue ? group_of<P, G>::value.prologue.size() - 1 : 0].store
          : -1;
  static constexpr long left_bytes =
      makes_left && stored < 0 ? align_up(long(shape.rows * shape.inner) * long(sizeof(T))) : 0;
  /// Elements of a row of c that are finished together.
  static constexpr int each =
      makes_weight ? access_width<float>(int(shape.columns)) : access_width<T>(int(shape.columns));

  PIPE_HD PIPE_INLINE static T* made_left(arguments const& a) {
    return stored >= 0 ? a.at<T>(stored < 0 ? 0 : stored) : static_cast<T*>(a.workspace);
  }
  PIPE_HD PIPE_INLINE static T const* left(arguments const& a) {
    constexpr group g = group_of<P, G>::value;
    return makes_left ? made_left(a) : a.at<T const>(g.in[0]);
  }
  PIPE_HD PIPE_INLINE static T const* right(arguments const& a) {
    constexpr group g = group_of<P, G>::value;
    return a.at<T const>(g.in[1]);
  }

  /// Finished elements [column, column + Count) of a row of c, or of the bias's gradient.
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent row, int column, float (&v)[Count]) {
    constexpr group g = group_of<P, G>::value;
    if constexpr (makes_weight) {
      constexpr int bias = stored < 0 ? 0 : stored;
      float* const to = sums_bias && row == shape.rows ? a.at<float>(bias) + column
                                                       : a.at<float>(g.out[0]) + row * shape.columns + column;
      if (a.accumulate) {
        float before[Count];
        load<Count>(to, before);
        PIPE_UNROLL
        for (int i = 0; i < Count; ++i) v[i] = before[i] + v[i];
      }
      save<Count>(to, v);
    } else {
      finish<P, G>(a, row, column, v);
    }
  }
};

/// The rows of a that a prologue makes.
template <class P, int G>
struct left_rows_kernel {
  using T = typename P::element;
  using product = contraction<P, G>;
  using steps = chain<P, G, false>;
  static constexpr extent elements = product::shape.rows * steps::width;
  static constexpr int threads = 256, each = access_width<T>(steps::width);
  static constexpr extent blocks = (elements + threads * each - 1) / (threads * each);
  static constexpr long workspace_bytes = product::left_bytes;
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr group g = group_of<P, G>::value;
    block.part([&](int thread, state&) {
      extent const at = (block.index() * threads + thread) * each;
      if (at >= elements) return;
      float v[each];
      load<each>(a.at<T const>(g.in[0]) + at, v);
      steps::template run<each>(a, at / steps::width, int(at % steps::width), v);
      if constexpr (product::stored < 0) save<each>(product::made_left(a) + at, v);
    });
  }
};

/// The tiles of c; of several splits, their sums, [split][row][column], which split_sums_kernel adds up.
template <class P, int G, tile_plan Plan>
struct contraction_kernel {
  using T = typename P::element;
  using product = contraction<P, G>;
  static constexpr product_shape shape = product::shape;
  static constexpr product_format format = product::format;
  static constexpr operand_format operands = operands_of(format);
  static constexpr bool split = Plan.splits > 1, sums_bias = product::sums_bias;

  static constexpr extent tile_rows = (shape.rows + Plan.rows - 1) / Plan.rows;
  static constexpr extent tile_columns = (shape.columns + Plan.columns - 1) / Plan.columns;
  static constexpr extent slabs = Plan.slabs(shape), slabs_each = Plan.slabs_each(shape);
  static constexpr int threads = Plan.threads();
  static constexpr extent blocks = tile_rows * tile_columns * Plan.splits;
  static constexpr extent partial_rows = shape.rows + (sums_bias ? 1 : 0);
  static constexpr long workspace_bytes =
      product::left_bytes + (split ? long(partial_rows * shape.columns) * Plan.splits * long(sizeof(float)) : 0);

  /// Small tiles that a warp multiplies, of 16 rows and 8 columns, and how deep.
  static constexpr int down = Plan.warp_rows / 16, across = Plan.warp_columns / 8, inner = tile<operands>::inner;
  static_assert(across % 2 == 0 && Plan.depth % inner == 0);

  struct state {
    float sums[down][across][4];
    unsigned a[down][4], b[across][2];
    unsigned a_rest[down][4], b_rest[across][2];  // fp32: what tf32 numbers leave out
    float step[4][4];                             // fp32: the sums of one multiplication
    float columns[across];                        // of b, over the k that this thread holds
  };
  struct stage {
    operand_slab<T, Plan.rows, Plan.depth, product::makes_weight> left;
    operand_slab<T, Plan.columns, Plan.depth, true> right;
  };
  static constexpr int sums_stride = Plan.columns + 8;  // no two threads of half a warp write to one bank
  union shared {
    stage stages[Plan.stages];
    float sums[Plan.rows * sums_stride];
  };

  /// The tile of a block, and the slabs that it adds up.
  struct place {
    extent row;
    int column, split, first_slab, slabs;
  };
  /// Blocks that run together work on eight rows of tiles, and so share what they read.
  PIPE_HD PIPE_INLINE static place place_of(extent block) {
    constexpr unsigned tiles = unsigned(tile_rows * tile_columns), band = 8, band_tiles = band * unsigned(tile_columns);
    unsigned const split_number = unsigned(block) / tiles, index = unsigned(block) % tiles,
                   first = index / band_tiles * band;
    unsigned const high = unsigned(tile_rows) - first < band ? unsigned(tile_rows) - first : band;
    int const slab = int(split_number) * int(slabs_each), left = int(slabs) - slab;
    return {extent(first + index % band_tiles % high) * Plan.rows, int(index % band_tiles / high) * Plan.columns,
            int(split_number), slab, left < int(slabs_each) ? left : int(slabs_each)};
  }
  /// Where a warp's piece of the tile begins.
  PIPE_HD PIPE_INLINE static int warp_row(int thread) {
    return thread / warp_size / (Plan.columns / Plan.warp_columns) * Plan.warp_rows;
  }
  PIPE_HD PIPE_INLINE static int warp_column(int thread) {
    return thread / warp_size % (Plan.columns / Plan.warp_columns) * Plan.warp_columns;
  }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    place const at = place_of(block.index());
    T const *const left = product::left(a), *const right = product::right(a);
    block.part([&](int, state& mine) {
      PIPE_UNROLL
      for (int j = 0; j < across; ++j) {
        mine.columns[j] = 0;
        PIPE_UNROLL
        for (int i = 0; i < down; ++i) PIPE_UNROLL
        for (int c = 0; c < 4; ++c) mine.sums[i][j][c] = 0;
      }
    });
    auto const start = [&](int slab) {
      if (slab < at.slabs) {
        stage& s = block.shared().stages[unsigned(slab) % Plan.stages];
        extent const k = extent(at.first_slab + slab) * Plan.depth;
        block.part([&](int thread, state&) {
          if constexpr (product::makes_weight)
            s.left.template copy<shape.inner, int(shape.rows), threads>(block, thread, left, k, at.row);
          else
            s.left.template copy<shape.rows, int(shape.inner), threads>(block, thread, left, at.row, k);
          s.right.template copy<shape.inner, int(shape.columns), threads>(block, thread, right, k, at.column);
        });
      }
      commit_copies(block);
    };
    PIPE_UNROLL
    for (int slab = 0; slab + 1 < Plan.stages; ++slab) start(slab);
    for (int slab = 0; slab < at.slabs; ++slab) {
      await_copies<Plan.stages - 2>(block);
      start(slab + Plan.stages - 1);  // where the slab before this one was, which all threads have read
      multiply(block, block.shared().stages[unsigned(slab) % Plan.stages], at.row == 0);
    }
    await_copies<0>(block);
    if constexpr (sums_bias)
      if (at.row == 0) take_columns(block, a, at);
    take_tile(block, a, at);
  }

  /// sums += left right; with_columns: adds the rows of right to `columns`.
  template <class Block>
  PIPE_HD PIPE_INLINE static void multiply(Block& block, stage const& s, [[maybe_unused]] bool with_columns) {
    PIPE_UNROLL
    for (int k = 0; k < Plan.depth; k += inner) {
      PIPE_UNROLL
      for (int j = 0; j < across; j += 2)
        s.right.template load_right<operands>(
            block, k, [&](int thread) { return warp_column(thread) + 8 * j; }, [&](state& mine) { return mine.b[j]; });
      if constexpr (sums_bias)
        if (with_columns) block.part([&](int, state& mine) { add_columns(mine); });
      if constexpr (operands == operand_format::tf32)
        block.part([&](int, state& mine) {
          PIPE_UNROLL
          for (int j = 0; j < across; ++j) round(mine.b[j], mine.b_rest[j]);
        });
      PIPE_UNROLL
      for (int i = 0; i < down; ++i) {
        s.left.template load_left<operands>(
            block, k, [&](int thread) { return warp_row(thread) + 16 * i; }, [&](state& mine) { return mine.a[i]; });
        if constexpr (operands == operand_format::tf32)
          block.part([&](int, state& mine) { round(mine.a[i], mine.a_rest[i]); });
        if constexpr (format == product_format::fp32)
          multiply_exactly(block, i);
        else
          PIPE_UNROLL
        for (int j = 0; j < across; ++j)
          multiply_add<operands>(block,
                                 [&](state& mine) { return tile_operands{mine.sums[i][j], mine.a[i], mine.b[j]}; });
      }
    }
  }
  PIPE_HD PIPE_INLINE static void add_columns(state& mine) {
    PIPE_UNROLL
    for (int j = 0; j < across; ++j) PIPE_UNROLL
    for (int i = 0; i < 2; ++i) PIPE_UNROLL
    for (int half = 0; half < tile<operands>::per_register; ++half)
      mine.columns[j] += sizeof(T) == 4 ? math::from_bits(mine.b[j][i]) : operand_value<operands>(mine.b[j][i], half);
  }
  /// To tf32 numbers, and what they leave out to tf32 numbers of its own.
  template <int Count>
  PIPE_HD PIPE_INLINE static void round(unsigned (&x)[Count], unsigned (&rest)[Count]) {
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      float const exact = math::from_bits(x[i]);
      x[i] = to_tf32(exact);
      if constexpr (format == product_format::fp32) rest[i] = to_tf32(exact - math::from_bits(x[i]));
    }
  }
  /// Row i of small tiles in fp32. Tensor cores add by cutting digits off, which over thousands of k is a bias; so each multiplication
  /// starts from zero, and its sums are added with rounding.
  ///
  /// source: Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak
  ///         performance", 2022
  template <class Block>
  PIPE_HD PIPE_INLINE static void multiply_exactly(Block& block, int i) {
    constexpr int some = across < 4 ? across : 4;  // so many hide how long one takes
    PIPE_UNROLL
    for (int first = 0; first < across; first += some) {
      auto const each_product = [&](auto left, auto right) {
        PIPE_UNROLL
        for (int j = 0; j < some; ++j)
          multiply_add<operands>(
              block, [&](state& mine) { return tile_operands{mine.step[j], left(mine), right(mine)[first + j]}; });
      };
      block.part([&](int, state& mine) {
        PIPE_UNROLL
        for (int j = 0; j < some; ++j) PIPE_UNROLL
        for (int c = 0; c < 4; ++c) mine.step[j][c] = 0;
      });
      each_product([&](state& mine) { return mine.a_rest[i]; }, [](state& mine) { return mine.b; });
      each_product([&](state& mine) { return mine.a[i]; }, [](state& mine) { return mine.b_rest; });
      each_product([&](state& mine) { return mine.a[i]; }, [](state& mine) { return mine.b; });
      block.part([&](int, state& mine) {
        PIPE_UNROLL
        for (int j = 0; j < some; ++j) PIPE_UNROLL
        for (int c = 0; c < 4; ++c) mine.sums[i][first + j][c] += mine.step[j][c];
      });
    }
  }

  /// Elements of a row of c, or of the bias's gradient, are complete, or those of a split are.
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, place const& at, extent row, int column, float (&v)[Count]) {
    if constexpr (split)
      save<Count>(partial_sums(a) + (at.split * partial_rows + row) * shape.columns + column, v);
    else
      product::template take<Count>(a, row, column, v);
  }
  PIPE_HD PIPE_INLINE static float* partial_sums(arguments const& a) {
    return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + product::left_bytes);
  }

  template <class Block>
  PIPE_HD PIPE_INLINE static void take_columns(Block& block, arguments const& a, place const& at) {
    PIPE_UNROLL
    for (int j = 0; j < across; ++j)  // four lanes share a column
      reduce_lanes<4>(block, [&](state& mine) -> float& { return mine.columns[j]; }, plus{});
    block.part([&](int thread, state& mine) {
      if (warp_row(thread) != 0 || thread % 4 != 0) return;
      PIPE_UNROLL
      for (int j = 0; j < across; ++j) {
        int const column = at.column + warp_column(thread) + 8 * j + thread % warp_size / 4;
        float v[1] = {mine.columns[j]};
        if (column < shape.columns) take<1>(a, at, shape.rows, column, v);
      }
    });
  }
  template <class Block>
  PIPE_HD PIPE_INLINE static void take_tile(Block& block, arguments const& a, place const& at) {
    constexpr int each = product::each, pieces = Plan.columns / each;
    block.phase([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int i = 0; i < down; ++i) PIPE_UNROLL
      for (int j = 0; j < across; ++j) PIPE_UNROLL
      for (int c = 0; c < 4; c += 2) {
        tile_place const p = place_in_c(thread % warp_size, c);
        float const two[2] = {mine.sums[i][j][c], mine.sums[i][j][c + 1]};
        save<2>(block.shared().sums + (warp_row(thread) + 16 * i + p.row) * sums_stride + warp_column(thread) + 8 * j +
                    p.column,
                two);
      }
    });
    block.part([&](int thread, state&) {
      for (int piece = thread; piece < Plan.rows * pieces; piece += threads) {
        int const r = piece / pieces, c = piece % pieces * each;
        if (at.row + r >= shape.rows || at.column + c >= shape.columns) continue;
        float v[each];
        load<each>(block.shared().sums + r * sums_stride + c, v);
        take<each>(a, at, at.row + r, at.column + c, v);
      }
    });
  }
};

/// c from the sums of all splits, which are added in order.
template <class P, int G, tile_plan Plan>
struct split_sums_kernel {
  using tiles = contraction_kernel<P, G, Plan>;
  using product = contraction<P, G>;
  static constexpr int threads = 256, each = product::each, together = Plan.splits < 8 ? Plan.splits : 8;
  static constexpr extent columns = product::shape.columns, elements = tiles::partial_rows * columns;
  static constexpr extent blocks = (elements + threads * each - 1) / (threads * each);
  static constexpr long workspace_bytes = tiles::workspace_bytes;
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state&) {
      extent const at = (block.index() * threads + thread) * each;
      if (at >= elements) return;
      float v[each] = {};
      for (int first = 0; first < Plan.splits; first += together) PIPE_UNROLL
      for (int split = first; split < first + together; ++split) {
        if (split >= Plan.splits) break;
        float x[each];
        load<each>(tiles::partial_sums(a) + split * elements + at, x);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) v[i] += x[i];
      }
      product::template take<each>(a, at / columns, int(at % columns), v);
    });
  }
};

/// The kernels of a product, cut as planned.
template <class P, int G, tile_plan Plan = plan_for(contraction<P, G>::shape, contraction<P, G>::format)>
constexpr auto lower_contraction() {
  using tiles = contraction_kernel<P, G, Plan>;
  using sums = split_sums_kernel<P, G, Plan>;
  if constexpr (contraction<P, G>::makes_left && Plan.splits > 1)
    return bodies<left_rows_kernel<P, G>, tiles, sums>{};
  else if constexpr (contraction<P, G>::makes_left)
    return bodies<left_rows_kernel<P, G>, tiles>{};
  else if constexpr (Plan.splits > 1)
    return bodies<tiles, sums>{};
  else
    return bodies<tiles>{};
}

}  // namespace pp::cuda
