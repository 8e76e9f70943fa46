// SPDX-License-Identifier: BSL-1.0
//
// Norms and softmax along rows, and their gradients, with a chain of pointwise ops before and
// after. A row is read once, stays in registers while its elements are summed, and is written once;
// only elements that do not fit into the registers of a block are read again.
#pragma once

#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/row_team.hpp>

namespace pp::cuda {

/// Negative infinity: no number is less.
PIPE_HD PIPE_INLINE float least() { return math::from_bits(0xff800000u); }

/// Base of the kernels of this file: a team for each row keeps `Kept` floats of each element.
///
/// cost: every row is read once and written once, which bounds the speed; all loads of a row are
///       started before the first loaded number is used
template <class P, int G, int Kept>
struct row_kernel {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns;
  using team = row_team<T, columns, Kept* int(sizeof(float))>;
  static constexpr int threads = team::threads, each = team::each;
  static constexpr extent blocks = team::blocks(launch_rows<P, G>::planned);
  using pieces = float[team::most_held][each];
  template <int Index>
  static constexpr int in = group_of<P, G>::value.in[Index];
  template <int Index>
  static constexpr int out = group_of<P, G>::value.out[Index];

  /// The end of the rows, and whether it is in front of all rows of a block.
  PIPE_HD PIPE_INLINE static extent end(arguments const& a) { return launch_rows<P, G>::end(a); }
  template <class Block>
  PIPE_HD PIPE_INLINE static bool is_behind(Block const& block, arguments const& a) {
    return launch_rows<P, G>::vary && block.position() * team::teams >= end(a);
  }

  /// Piece `column` of a row of operand Index.
  template <int Index>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, int column,
                                       float (&v)[each]) {
    load<each>(a.at<T const>(in<Index>) + row * columns + column, v);
  }

  /// Reads the pieces that the thread keeps of its row of the main operand, and applies the
  /// prologue: all loads are started before the thread waits for one of them.
  PIPE_HD PIPE_INLINE static void read_row(arguments const& a, extent row, int thread, pieces& x) {
    using before = chain<P, G, false>;
    team::for_kept(thread, [&](int held, int column) { read<0>(a, row, column, x[held]); });
    if constexpr (before::length > 0)
      team::for_kept(thread, [&](int held, int column) {
        before::template run<each>(a, row, column, x[held]);
      });
  }

  /// Calls f(column, piece, whether the piece is kept) for the thread's pieces of its row, after
  /// read_row.
  template <class F>
  PIPE_HD PIPE_INLINE static void for_row(arguments const& a, extent row, int thread, pieces& x,
                                          F f) {
    team::for_pieces(
        thread, [&](int held, int column) { read<0>(a, row, column, x[held]); },
        [&](int held, int column) {
          bool const kept = held < team::kept;
          if (!kept) chain<P, G, false>::template run<each>(a, row, column, x[held]);
          f(column, x[held], kept);
        });
  }
};

/// LayerNorm: y = (x - mean) * rstd * gamma (+ beta), rstd = 1 / sqrt(mean of (x - mean)^2 +
/// epsilon). RMSNorm: mean = 0.
///
/// shape:  x (R, C), gamma (C), beta (C) or none -> y (R, C), statistics (R, 2): mean and rstd in
///         fp32
/// work:   a team for each row; two reductions, the second over differences from the mean, so no
///         digits of the variance cancel
/// source: Ba et al., Layer Normalization, 2016; Zhang and Sennrich, 2019 (RMSNorm)
template <class P, int G>
struct norm_kernel : row_kernel<P, G, 1> {
  using base = row_kernel<P, G, 1>;
  using base::columns, base::each;
  using typename base::T, typename base::team;
  static constexpr bool has_mean = group_of<P, G>::value.attributes.norm().has_mean;
  static constexpr float epsilon = float(group_of<P, G>::value.attributes.norm().epsilon);

  struct state {
    typename base::pieces x;
    float sum, squares;
  };
  struct shared {
    float sums[1][team::warps], squares[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_behind(block, a)) return;
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum = 0;
      if (row >= base::end(a)) return;
      base::read_row(a, row, thread, mine.x);
      if constexpr (has_mean)
        base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each], bool) {
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) mine.sum += x[i];
        });
    });
    if constexpr (has_mean)
      team::reduce(
          block, [](state& mine, int) -> float& { return mine.sum; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.squares = 0;
      if (row >= base::end(a)) return;
      float const mean = mine.sum / float(columns);
      base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each], bool) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.squares += (x[i] - mean) * (x[i] - mean);
      });
    });
    team::reduce(
        block, [](state& mine, int) -> float& { return mine.squares; }, plus{},
        block.shared().squares);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= base::end(a)) return;
      float const mean = mine.sum / float(columns),
                  rstd = 1.0f / libm::sqrt(mine.squares / float(columns) + epsilon);
      float const statistics[2]{mean, rstd};
      if (thread % team::size == 0)
        save<2>(a.at<float>(base::template out<1>) + 2 * row, statistics);
      base::for_row(a, row, thread, mine.x, [&](int column, float(&x)[each], bool) {
        float gamma[each], beta[each];
        load<each>(a.at<T const>(base::template in<1>) + column, gamma);
        if constexpr (base::template in<2> >= 0)
          load<each>(a.at<T const>(base::template in<2>) + column, beta);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) {
          x[i] = (x[i] - mean) * rstd * gamma[i];
          if constexpr (base::template in<2> >= 0) x[i] += beta[i];
        }
        finish<P, G, each>(a, row, column, x);
      });
    });
  }
};

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma, xhat = (x - mean) * rstd.
/// RMSNorm: without mean(g).
///
/// shape: dy (R, C), x (R, C), gamma (C), statistics (R, 2) -> dx (R, C)
/// work:  a team for each row; one reduction of both means
template <class P, int G>
struct norm_gradient_kernel : row_kernel<P, G, 2> {
  using base = row_kernel<P, G, 2>;
  using base::columns, base::each;
  using typename base::T, typename base::team;
  static constexpr bool has_mean = group_of<P, G>::value.attributes.norm().has_mean;

  struct state {
    typename base::pieces g, xhat;
    float rstd, sum[2];  // of g, of g * xhat
  };
  struct shared {
    float sums[2][team::warps];
  };

  /// Reads dy and x of a piece.
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, int column, state& mine,
                                       int held) {
    base::template read<0>(a, row, column, mine.g[held]);
    base::template read<1>(a, row, column, mine.xhat[held]);
  }
  /// Overwrites dy and x of a piece by g and xhat.
  PIPE_HD PIPE_INLINE static void scale(arguments const& a, extent row, int column, state& mine,
                                        int held) {
    float gamma[each], statistics[2];
    load<each>(a.at<T const>(base::template in<2>) + column, gamma);
    load<2>(a.at<float const>(base::template in<3>) + 2 * row, statistics);
    mine.rstd = statistics[1];
    PIPE_UNROLL
    for (int i = 0; i < each; ++i) {
      mine.g[held][i] *= gamma[i];
      mine.xhat[held][i] = (mine.xhat[held][i] - statistics[0]) * statistics[1];
    }
  }

  /// Adds a piece, g and xhat, to the sums.
  PIPE_HD PIPE_INLINE static void add(state& mine, int held) {
    PIPE_UNROLL
    for (int i = 0; i < each; ++i) {
      if constexpr (has_mean) mine.sum[0] += mine.g[held][i];
      mine.sum[1] += mine.g[held][i] * mine.xhat[held][i];
    }
  }
  /// Computes dx of a piece from g, xhat and the sums of the row.
  PIPE_HD PIPE_INLINE static void finish_piece(state const& mine, int held, float (&dx)[each]) {
    float const mean_g = mine.sum[0] / float(columns), mean_gx = mine.sum[1] / float(columns);
    PIPE_UNROLL
    for (int i = 0; i < each; ++i)
      dx[i] = (mine.g[held][i] - mean_g - mine.xhat[held][i] * mean_gx) * mine.rstd;
  }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_behind(block, a)) return;
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum[0] = mine.sum[1] = 0;
      if (row >= base::end(a)) return;
      team::for_kept(thread, [&](int held, int column) { read(a, row, column, mine, held); });
      team::for_pieces(
          thread, [&](int held, int column) { read(a, row, column, mine, held); },
          [&](int held, int column) {
            scale(a, row, column, mine, held);
            add(mine, held);
          });
    });
    team::reduce(
        block, [](state& mine, int i) -> float& { return mine.sum[i]; }, plus{},
        block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= base::end(a)) return;
      team::for_pieces(
          thread, [&](int held, int column) { read(a, row, column, mine, held); },
          [&](int held, int column) {
            if (held >= team::kept) scale(a, row, column, mine, held);
            float dx[each];
            finish_piece(mine, held, dx);
            finish<P, G, each>(a, row, column, dx);
          });
    });
  }
};

/// y = e^(x - max) / (sum of e^(x - max) over the row). A NaN makes the row NaN.
///
/// shape: x (R, C) -> y (R, C)
/// work:  a team for each row; two reductions: the largest element, then the sum
template <class P, int G>
struct softmax_kernel : row_kernel<P, G, 1> {
  using base = row_kernel<P, G, 1>;
  using base::each;
  using typename base::team;

  struct state {
    typename base::pieces x;
    float top, sum;
  };
  struct shared {
    float tops[1][team::warps], sums[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_behind(block, a)) return;
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.top = least();
      if (row >= base::end(a)) return;
      base::read_row(a, row, thread, mine.x);
      base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each], bool) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.top = larger{}(mine.top, x[i]);
      });
    });
    team::reduce(
        block, [](state& mine, int) -> float& { return mine.top; }, larger{}, block.shared().tops);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum = 0;
      if (row >= base::end(a)) return;
      base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each], bool) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.sum += x[i] = math::exp(x[i] - mine.top);
      });
    });
    team::reduce(
        block, [](state& mine, int) -> float& { return mine.sum; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= base::end(a)) return;
      float const factor = 1.0f / mine.sum;
      base::for_row(a, row, thread, mine.x, [&](int column, float(&x)[each], bool kept) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) x[i] = (kept ? x[i] : math::exp(x[i] - mine.top)) * factor;
        finish<P, G, each>(a, row, column, x);
      });
    });
  }
};

/// dx = y * (dy - sum of dy * y over the row)
///
/// shape: dy (R, C), y (R, C) -> dx (R, C)
/// work:  a team for each row; one reduction
template <class P, int G>
struct softmax_gradient_kernel : row_kernel<P, G, 2> {
  using base = row_kernel<P, G, 2>;
  using base::each;
  using typename base::team;

  struct state {
    typename base::pieces dy, y;
    float sum;
  };
  struct shared {
    float sums[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (base::is_behind(block, a)) return;
    auto const read = [&](extent row, int column, state& mine, int held) {
      base::template read<0>(a, row, column, mine.dy[held]);
      base::template read<1>(a, row, column, mine.y[held]);
    };
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum = 0;
      if (row >= base::end(a)) return;
      auto const read_held = [&](int held, int column) { read(row, column, mine, held); };
      team::for_kept(thread, read_held);
      team::for_pieces(thread, read_held, [&](int held, int) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.sum += mine.dy[held][i] * mine.y[held][i];
      });
    });
    team::reduce(
        block, [](state& mine, int) -> float& { return mine.sum; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= base::end(a)) return;
      team::for_pieces(
          thread, [&](int held, int column) { read(row, column, mine, held); },
          [&](int held, int column) {
            float dx[each];
            PIPE_UNROLL
            for (int i = 0; i < each; ++i) dx[i] = mine.y[held][i] * (mine.dy[held][i] - mine.sum);
            finish<P, G, each>(a, row, column, dx);
          });
    });
  }
};

template <>
struct kernel_of<op_kind::norm> : one_kernel<norm_kernel> {};

template <>
struct kernel_of<op_kind::norm_gradient> : one_kernel<norm_gradient_kernel> {};

template <>
struct kernel_of<op_kind::softmax> : one_kernel<softmax_kernel> {};

template <>
struct kernel_of<op_kind::softmax_gradient> : one_kernel<softmax_gradient_kernel> {};

}  // namespace pp::cuda
