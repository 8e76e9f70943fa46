// SPDX-License-Identifier: BSL-1.0
//
// Norms and softmax along rows, and their gradients, with a chain of pointwise steps before and after. A row is read once, stays in
// registers while it is summed over, and is written once; only one that fits into no block's registers is read again.
#pragma once

#include <pipe/backend/cuda/chain.hpp>
#include <pipe/backend/cuda/row_team.hpp>

namespace pp::cuda {

/// Negative infinity: no number is less.
PIPE_HD PIPE_INLINE float least() { return math::from_bits(0xff800000u); }

/// What the kernels of this file have in common: teams that keep `Kept` floats for each element.
template <class P, int G, int Kept>
struct row_kernel {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns;
  static constexpr extent rows = extent(group_of<P, G>::value.rows) * P::samples;
  using team = row_team<T, columns, Kept* int(sizeof(float))>;
  static constexpr int threads = team::threads, each = team::each;
  static constexpr extent blocks = team::blocks(rows);
  using kept = float[team::turns][each];
  template <int I>
  static constexpr int in = group_of<P, G>::value.in[I];
  template <int I>
  static constexpr int out = group_of<P, G>::value.out[I];

  /// Piece `column` of a row of operand I.
  template <int I>
  PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, int column, float (&v)[each]) {
    load<each>(a.at<T const>(in<I>) + row * columns + column, v);
  }

  /// The thread's pieces of its row of the main operand, after the prologue: all loads are on their way before one is waited for.
  PIPE_HD PIPE_INLINE static void read_row(arguments const& a, extent row, int thread, kept& x) {
    using before = chain<P, G, false>;
    team::for_pieces(thread, [&](int turn, int column) { read<0>(a, row, column, x[turn]); });
    if constexpr (before::length > 0)
      team::for_pieces(thread, [&](int turn, int column) { before::template run<each>(a, row, column, x[turn]); });
  }

  /// f(column, piece) for the thread's pieces of its row: those that read_row has kept, or read again.
  template <class F>
  PIPE_HD PIPE_INLINE static void for_row(arguments const& a, extent row, int thread, kept& x, F f) {
    team::for_pieces(thread, [&](int turn, int column) {
      if constexpr (!team::keeps) {
        read<0>(a, row, column, x[turn]);
        chain<P, G, false>::template run<each>(a, row, column, x[turn]);
      }
      f(column, x[turn]);
    });
  }
};

/// y = (x - mean) * rstd * gamma (+ beta), and statistics {mean, rstd} of each row. Without a mean it is 0: RMSNorm.
template <class P, int G>
struct norm_kernel : row_kernel<P, G, 1> {
  using base = row_kernel<P, G, 1>;
  using base::columns, base::each, base::rows;
  using typename base::T, typename base::team;
  static constexpr bool has_mean = group_of<P, G>::value.flag;
  static constexpr float epsilon = group_of<P, G>::value.epsilon;

  struct state {
    typename base::kept x;
    float sum, squares;
  };
  struct shared {
    float sums[1][team::warps], squares[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum = 0;
      if (row >= rows) return;
      if constexpr (team::keeps) base::read_row(a, row, thread, mine.x);
      if constexpr (has_mean)
        base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each]) {
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) mine.sum += x[i];
        });
    });
    if constexpr (has_mean)
      team::reduce(block, [](state& mine, int) -> float& { return mine.sum; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.squares = 0;
      if (row >= rows) return;
      float const mean = mine.sum / float(columns);
      base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each]) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.squares += (x[i] - mean) * (x[i] - mean);
      });
    });
    team::reduce(block, [](state& mine, int) -> float& { return mine.squares; }, plus{}, block.shared().squares);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= rows) return;
      float const mean = mine.sum / float(columns), rstd = 1.0f / libm::sqrt(mine.squares / float(columns) + epsilon);
      float const statistics[2]{mean, rstd};
      if (thread % team::size == 0) save<2>(a.at<float>(base::template out<1>) + 2 * row, statistics);
      base::for_row(a, row, thread, mine.x, [&](int column, float(&x)[each]) {
        float gamma[each], beta[each];
        load<each>(a.at<T const>(base::template in<1>) + column, gamma);
        if constexpr (base::template in<2> >= 0) load<each>(a.at<T const>(base::template in<2>) + column, beta);
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

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma, xhat = (x - mean) * rstd. RMSNorm: without mean(g).
template <class P, int G>
struct norm_gradient_kernel : row_kernel<P, G, 2> {
  using base = row_kernel<P, G, 2>;
  using base::columns, base::each, base::rows;
  using typename base::T, typename base::team;
  static constexpr bool has_mean = group_of<P, G>::value.flag;

  struct state {
    typename base::kept g, xhat;
    float rstd, sum[2];  // of g, of g * xhat
  };
  struct shared {
    float sums[2][team::warps];
  };

  /// f(column, g, xhat) for the thread's pieces of its row.
  template <bool Again, class F>
  PIPE_HD PIPE_INLINE static void for_pairs(arguments const& a, extent row, int thread, state& mine, F f) {
    if constexpr (!Again)
      team::for_pieces(thread, [&](int turn, int column) {
        base::template read<0>(a, row, column, mine.g[turn]);
        base::template read<1>(a, row, column, mine.xhat[turn]);
        if constexpr (!team::keeps) scale(a, row, column, mine, turn), f(column, mine.g[turn], mine.xhat[turn]);
      });
    if constexpr (Again || team::keeps)
      team::for_pieces(thread, [&](int turn, int column) {
        if constexpr (!Again) scale(a, row, column, mine, turn);
        f(column, mine.g[turn], mine.xhat[turn]);
      });
  }
  /// From dy and x to g and xhat.
  PIPE_HD PIPE_INLINE static void scale(arguments const& a, extent row, int column, state& mine, int turn) {
    float gamma[each], statistics[2];
    load<each>(a.at<T const>(base::template in<2>) + column, gamma);
    load<2>(a.at<float const>(base::template in<3>) + 2 * row, statistics);
    mine.rstd = statistics[1];
    PIPE_UNROLL
    for (int i = 0; i < each; ++i) {
      mine.g[turn][i] *= gamma[i];
      mine.xhat[turn][i] = (mine.xhat[turn][i] - statistics[0]) * statistics[1];
    }
  }

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum[0] = mine.sum[1] = 0;
      if (row >= rows) return;
      for_pairs<false>(a, row, thread, mine, [&](int, float(&g)[each], float(&xhat)[each]) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) {
          if constexpr (has_mean) mine.sum[0] += g[i];
          mine.sum[1] += g[i] * xhat[i];
        }
      });
    });
    team::reduce(block, [](state& mine, int i) -> float& { return mine.sum[i]; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= rows) return;
      float const mean_g = mine.sum[0] / float(columns), mean_gx = mine.sum[1] / float(columns);
      for_pairs<team::keeps>(a, row, thread, mine, [&](int column, float(&g)[each], float(&xhat)[each]) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) g[i] = (g[i] - mean_g - xhat[i] * mean_gx) * mine.rstd;
        finish<P, G, each>(a, row, column, g);
      });
    });
  }
};

/// y = e^x / (the sum of e^x over the row); computed from x less its largest element. NaN makes the row NaN.
template <class P, int G>
struct softmax_kernel : row_kernel<P, G, 1> {
  using base = row_kernel<P, G, 1>;
  using base::each, base::rows;
  using typename base::team;

  struct state {
    typename base::kept x;
    float top, sum;
  };
  struct shared {
    float tops[1][team::warps], sums[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.top = least();
      if (row >= rows) return;
      if constexpr (team::keeps) base::read_row(a, row, thread, mine.x);
      base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each]) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.top = larger{}(mine.top, x[i]);
      });
    });
    team::reduce(block, [](state& mine, int) -> float& { return mine.top; }, larger{}, block.shared().tops);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum = 0;
      if (row >= rows) return;
      base::for_row(a, row, thread, mine.x, [&](int, float(&x)[each]) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.sum += x[i] = math::exp(x[i] - mine.top);
      });
    });
    team::reduce(block, [](state& mine, int) -> float& { return mine.sum; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= rows) return;
      float const factor = 1.0f / mine.sum;
      base::for_row(a, row, thread, mine.x, [&](int column, float(&x)[each]) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) x[i] = (team::keeps ? x[i] : math::exp(x[i] - mine.top)) * factor;
        finish<P, G, each>(a, row, column, x);
      });
    });
  }
};

/// dx = y * (dy - the sum of dy * y over the row)
template <class P, int G>
struct softmax_gradient_kernel : row_kernel<P, G, 2> {
  using base = row_kernel<P, G, 2>;
  using base::each, base::rows;
  using typename base::team;

  struct state {
    typename base::kept dy, y;
    float sum;
  };
  struct shared {
    float sums[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    auto const read = [&](extent row, int column, state& mine, int turn) {
      base::template read<0>(a, row, column, mine.dy[turn]);
      base::template read<1>(a, row, column, mine.y[turn]);
    };
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum = 0;
      if (row >= rows) return;
      team::for_pieces(thread, [&](int turn, int column) {
        read(row, column, mine, turn);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.sum += mine.dy[turn][i] * mine.y[turn][i];
      });
    });
    team::reduce(block, [](state& mine, int) -> float& { return mine.sum; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= rows) return;
      team::for_pieces(thread, [&](int turn, int column) {
        if constexpr (!team::keeps) read(row, column, mine, turn);
        float dx[each];
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) dx[i] = mine.y[turn][i] * (mine.dy[turn][i] - mine.sum);
        finish<P, G, each>(a, row, column, dx);
      });
    });
  }
};

}  // namespace pp::cuda
