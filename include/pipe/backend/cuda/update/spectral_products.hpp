// SPDX-License-Identifier: BSL-1.0
//
// The products of a Newton-Schulz iteration: one launch for each product, over all matrices of a
// batch, whose shapes are read from a list. So a program has two kernels of products for any number
// of shapes.
//
// The matrices of an iteration are in the workspace. Their rows and columns are padded to multiples
// of 64 by zeros, which the products keep zero: no tile has an edge, and all copies are of 16
// bytes. An iteration multiplies x, which has at least as many rows as columns: the parameter, or
// its transpose if the parameter has more columns than rows ("lies").
#pragma once

#include <pipe/backend/cuda/matmul/contraction_plan.hpp>
#include <pipe/backend/cuda/matmul/contraction_slab.hpp>
#include <pipe/backend/cuda/matmul/contraction_warp.hpp>
#include <pipe/backend/cuda/update/coefficients.hpp>
#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/update.hpp>

namespace pp::cuda {

/// A matrix of a batch.
///
/// units: elements; offsets are in the workspace unless the comment names another region
struct spectral_matrix {
  static constexpr int tile = 64;

  extent begin = 0;  ///< in the regions of parameters and gradients
  extent state = 0;  ///< momentum, in the region of optimizer state
  int rows = 0, columns = 0;
  int tall = 0, wide = 0;        ///< extents of x, multiples of a tile
  extent x = 0, next = 0;        ///< (tall, wide): before and after an iteration; they swap then
  extent s = 0, polynomial = 0;  ///< (wide, wide)
  extent first_tile = 0;         ///< first tile of x, among the tiles of the batch
  int coefficients = 0;          ///< number of its set of coefficients

  /// Whether x is the transpose of the parameter.
  PIPE_HD bool lies() const { return rows < columns; }
  /// The first row and column of a tile, in x (tile_row, tile_column) and in the parameter (row,
  /// column).
  struct place {
    int tile_row, tile_column, row, column;
  };
  PIPE_HD place place_of(extent index) const {
    int const across = wide / tile, row = int(index) / across * tile,
              column = int(index) % across * tile;
    return lies() ? place{row, column, column, row} : place{row, column, row, column};
  }
  /// The number of tiles of x.
  PIPE_HD extent tiles() const { return extent(tall / tile) * (wide / tile); }
  /// n rows or columns, rounded up to a multiple of a tile's extent.
  static constexpr int padded(long n) { return int((n + tile - 1) / tile * tile); }
  /// The number of tiles of x for a parameter of this shape; squares_of: of s.
  static constexpr long tiles_of(long rows, long columns) {
    return long(padded(rows) / tile) * (padded(columns) / tile);
  }
  static constexpr long squares_of(long rows, long columns) {
    long const across = padded(rows < columns ? rows : columns) / tile;
    return across * across;
  }
  /// Elements of workspace: x, next, s and the polynomial.
  static constexpr long workspace(long rows, long columns) {
    long const tall = padded(rows < columns ? columns : rows),
               wide = padded(rows < columns ? rows : columns);
    return 2 * wide * (tall + wide);
  }
  /// A matrix whose workspace begins at `at`: x, next, s, then the polynomial. The caller fills in
  /// its place among parameters and states and its set of coefficients.
  static spectral_matrix of(long rows, long columns, extent at) {
    spectral_matrix m;
    m.rows = int(rows), m.columns = int(columns);
    m.tall = padded(rows < columns ? columns : rows);
    m.wide = padded(rows < columns ? rows : columns);
    m.x = at;
    m.next = m.x + extent(m.tall) * m.wide;
    m.s = m.next + extent(m.tall) * m.wide;
    m.polynomial = m.s + extent(m.wide) * m.wide;
    return m;
  }
};

/// Divides the matrices of a stage into batches that are updated together, each with at most
/// Optimizer::most_workspace elements of workspace, unless a single matrix needs more.
template <class Optimizer>
struct spectral_batches {
  /// units: elements
  long used = 0, most = 0;  ///< workspace of this batch; maximum over all batches
  /// Adds the next matrix; returns whether it begins a new batch.
  constexpr bool next(long rows, long columns) {
    long const needed = spectral_matrix::workspace(rows, columns);
    bool const begins = used == 0 || used + needed > Optimizer::most_workspace;
    used = begins ? needed : used + needed;
    most = used > most ? used : most;
    return begins;
  }
};

/// The memory of a batch of matrices, for all of its kernels: pointers that do not change from step
/// to step, so that launches can be replayed.
template <class Optimizer>
struct spectral_memory {
  using coefficients = typename Optimizer::template matrix_coefficients<float>;

  spectral_matrix const* matrices = nullptr;
  unsigned char const* sets = nullptr;  ///< coefficients, prepared with a gradient scale of 1
  float* weights = nullptr;
  float const* gradients = nullptr;
  float* states = nullptr;
  float* workspace = nullptr;
  float* factors = nullptr;              ///< by matrix: the factor that scales x
  step_outcome const* judged = nullptr;  ///< null: sound, factor 1

  /// The coefficients of a matrix in this step.
  PIPE_HD PIPE_INLINE coefficients with(spectral_matrix const& m) const {
    return coefficients_at<Optimizer, coefficients const>(sets, m.coefficients);
  }
};

/// For a matrix that is number `index` of its batch: calls append_tile(flat_range) for the tiles of
/// x, and append_square(flat_range) for the tiles of s.
template <class AppendTile, class AppendSquare>
void list_tiles(spectral_matrix const& m, int index, AppendTile append_tile,
                AppendSquare append_square) {
  extent const across = m.wide / spectral_matrix::tile;
  for (extent i = 0; i < m.tiles(); ++i) append_tile(flat_range{i, 1, index});
  for (extent i = 0; i < across * across; ++i) append_square(flat_range{i, 1, index});
}

/// The products of an iteration, in their order.
enum class spectral_product : unsigned char {
  square_x,    ///< s = x' x
  polynomial,  ///< polynomial = a 1 + b s + c s^2
  next         ///< next = x polynomial
};

/// One product of an iteration, for all matrices of a batch.
///
/// shape: square_x: x (tall, wide) -> s (wide, wide); polynomial: s -> polynomial; next: x (tall,
///        wide), polynomial (wide, wide) -> next (tall, wide)
/// law:   an element is the sum over ascending k, in tiles of the tensor core's depth; it depends
///        on its own matrix only
/// work:  a block has a tile of 64 x 64, as in contraction_tiles; the left factor of square_x and
///        polynomial is read by columns, which for polynomial is possible since s is its own
///        transpose
/// cost:  per iteration 2 wide^2 (2 tall + wide) FLOPs, three times as many in fp32
template <class Optimizer, product_format F, bool IsNext>
struct spectral_product_kernel {
  static constexpr tile_plan plan = middle_tiles(F);
  static constexpr int threads = plan.threads(), resident = plan.resident();
  static_assert(plan.rows == spectral_matrix::tile && plan.columns == spectral_matrix::tile);
  struct arguments {
    flat_ranges tiles;  ///< begin: the tile's number in its matrix
    spectral_memory<Optimizer> of;
    spectral_product what = spectral_product::next;
    bool is_first = false;    ///< whether x is not scaled yet
    bool is_swapped = false;  ///< x is where `next` was
  };
  static extent blocks(arguments const& a) { return a.tiles.count(); }

  /// The number of small tiles of a warp, each of 16 rows and 8 columns, and their depth.
  static constexpr int down = plan.warp_rows / 16, across = plan.warp_columns / 8,
                       inner = tile<operands_in<F>>::inner;
  static_assert(plan.depth == 2 * inner);
  struct state {
    float sums[down][across][4];
    warp_operands<across, down> operands[2];  // of both halves of a slab
    float const *left, *right;                // the first piece of a slab that the thread copies
  };
  using left_slab = operand_slab<float, plan.rows, plan.depth, !IsNext>;
  using right_slab = operand_slab<float, plan.columns, plan.depth, true>;
  struct stage {
    left_slab left;
    right_slab right;
  };
  struct shared {
    stage stages[plan.stages];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (!is_sound(a.of.judged)) return;
    flat_range const p = a.tiles.at(block.position());
    spectral_matrix const m = a.of.matrices[p.group];
    float* const room = a.of.workspace;
    float const* const x = room + (a.is_swapped ? m.next : m.x);
    bool const is_polynomial = a.what == spectral_product::polynomial;
    float const* const left = is_polynomial ? room + m.s : x;
    float const* const right = IsNext ? room + m.polynomial : left;
    // s has as many tiles across as x, so a tile's number has one meaning for all three products.
    int const across_tiles = m.wide / plan.columns;
    int const row = int(p.begin) / across_tiles * plan.rows,
              column = int(p.begin) % across_tiles * plan.columns;
    int const slabs = (IsNext || is_polynomial ? m.wide : m.tall) / plan.depth, width = m.wide;
    // From a slab to the next: along a row of x for the left factor of `next`, else down the rows.
    extent const left_stride = IsNext ? plan.depth : extent(width) * plan.depth;
    extent const right_stride = extent(width) * plan.depth;

    block.part([&](int thread, state& mine) {
      mine.left = first_of<left_slab>(thread, left + (IsNext ? extent(row) * width : row), width);
      mine.right = first_of<right_slab>(thread, right + column, width);
      PIPE_UNROLL
      for (int i = 0; i < down; ++i) {
        PIPE_UNROLL
        for (int j = 0; j < across; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 4; ++c) mine.sums[i][j][c] = 0;
        }
      }
    });
    // Slabs behind the last one are zeros.
    auto const start = [&](int slab, stage& s) {
      block.part([&](int thread, state const& mine) {
        bool const present = slab < slabs;
        copy(block, thread, s.left, mine.left + slab * left_stride, width, present);
        copy(block, thread, s.right, mine.right + slab * right_stride, width, present);
      });
      commit_copies(block);
    };
    PIPE_UNROLL
    for (int slab = 0; slab + 1 < plan.stages; ++slab) start(slab, block.shared().stages[slab]);
    await_copies<plan.stages - 2>(block);
    stage *before = &block.shared().stages[plan.stages - 1], *here = &block.shared().stages[0];
    load_half(block, *here, 0);
    for (int slab = 0; slab < slabs; ++slab) {
      stage* const next = &block.shared().stages[unsigned(slab + 1) % plan.stages];
      load_half(block, *here, 1);
      multiply(block, *here, 0);
      await_copies<plan.stages - 3>(block);
      // The next slab overwrites the previous slab, which all threads have read.
      start(slab + plan.stages - 1, *before);
      load_half(block, *next, 0);
      multiply(block, *here, 1);
      before = here, here = next;
    }
    await_copies<0>(block);

    // The epilogue: a thread has two neighbouring elements of a row, a warp 32 bytes of each of
    // eight rows.
    auto const with = a.of.with(m);
    float const factor = a.is_first ? a.of.factors[p.group] : 1.0f;
    float* const to = room + (IsNext          ? (a.is_swapped ? m.x : m.next)
                              : is_polynomial ? m.polynomial
                                              : m.s);
    int const elements = m.lies() ? m.rows : m.columns;  // length of the diagonal
    block.part([&](int thread, state const& mine) {
      PIPE_UNROLL
      for (int i = 0; i < down; ++i) {
        PIPE_UNROLL
        for (int j = 0; j < across; ++j) {
          PIPE_UNROLL
          for (int half = 0; half < 2; ++half) {
            tile_place const place = place_in_c(thread % warp_size, 2 * half);
            int const r = row + warp_row(thread) + 16 * i + place.row,
                      c = column + warp_column(thread) + 8 * j + place.column;
            extent const at = extent(r) * width + c;
            float v[2] = {mine.sums[i][j][2 * half], mine.sums[i][j][2 * half + 1]};
            if (is_polynomial) {
              float s[2];
              load<2>(left + at, s);
              PIPE_UNROLL
              for (int k = 0; k < 2; ++k) {
                v[k] = Optimizer::polynomial(with, s[k], v[k]);
                if (r == c + k && r < elements) v[k] += with.a;
              }
            } else if (a.is_first) {
              PIPE_UNROLL
              for (int k = 0; k < 2; ++k) v[k] *= IsNext ? factor : factor * factor;
            }
            save<2>(to + at, v);
          }
        }
      }
    });
  }

 private:
  /// The first row, and column, of a warp's piece of the tile.
  PIPE_HD PIPE_INLINE static int warp_row(int thread) {
    return thread / warp_size / (plan.columns / plan.warp_columns) * plan.warp_rows;
  }
  PIPE_HD PIPE_INLINE static int warp_column(int thread) {
    return thread / warp_size % (plan.columns / plan.warp_columns) * plan.warp_columns;
  }
  template <class Slab>
  using copies = typename Slab::template copy_plan<Slab::columns, threads>;
  /// The first piece that a thread copies of the slab at `from`, a matrix with rows of `width`
  /// elements.
  template <class Slab>
  PIPE_HD PIPE_INLINE static float const* first_of(int thread, float const* from, int width) {
    return from + extent(copies<Slab>::row(thread)) * width + copies<Slab>::column(thread);
  }
  /// Starts a thread's copies of a slab; `from`: its first piece.
  template <class Block, class Slab>
  PIPE_HD PIPE_INLINE static void copy(Block& block, int thread, Slab& to, float const* from,
                                       int width, bool present) {
    using plan_of_copy = copies<Slab>;
    int const first = Slab::place(plan_of_copy::row(thread), plan_of_copy::column(thread));
    PIPE_UNROLL
    for (int r = 0; r < Slab::rows; r += plan_of_copy::down) {
      PIPE_UNROLL
      for (int c = 0; c < Slab::columns; c += plan_of_copy::right)
        copy_async<16>(
            block,
            to.element + (Slab::stride > Slab::columns ? first + c : first ^ c) + r * Slab::stride,
            from + extent(r) * width + c, present);
    }
  }
  /// Loads the first operands of half 0 or 1 of a slab: all right operands, and 16 rows of the
  /// left.
  template <class Block>
  PIPE_HD PIPE_INLINE static void load_half(Block& block, stage const& s, int half) {
    PIPE_UNROLL
    for (int j = 0; j < across; j += 2)
      s.right.template load_right<operands_in<F>>(
          block, half * inner, [&](int thread) { return warp_column(thread) + 8 * j; },
          [&](state& mine) { return mine.operands[half].right + 2 * j; });
    load_rows(block, s, half, 0);
  }
  template <class Block>
  PIPE_HD PIPE_INLINE static void load_rows(Block& block, stage const& s, int half, int i) {
    s.left.template load_left<operands_in<F>>(
        block, half * inner, [&](int thread) { return warp_row(thread) + 16 * i; },
        [&](state& mine) { return mine.operands[half].left[i]; });
  }
  /// sums += left * right for half a slab whose first operands are loaded.
  template <class Block>
  PIPE_HD PIPE_INLINE static void multiply(Block& block, stage const& s, int half) {
    auto const of = [&](state& mine) -> auto& { return mine.operands[half]; };
    round_right<F, across>(block, of);
    PIPE_UNROLL
    for (int i = 0; i < down; ++i) {
      if (i + 1 < down) load_rows(block, s, half, i + 1);
      multiply_row<F, across>(block, i, of, [&](state& mine, int j) { return mine.sums[i][j]; });
    }
  }
};

}  // namespace pp::cuda
