// SPDX-License-Identifier: BSL-1.0
//
// Products along rows: of two rows, one number; of a row and a number, a row.
#pragma once

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/row_team.hpp>

namespace pp::cuda {

/// The sums of x z along the rows.
///
/// shape: x, z (R, C) -> y (R, 1)
/// work:  a team for each row; one reduction, whose first thread stores
/// cost:  one pass over x and z, bound by bytes
template <class P, int G>
struct row_dot_kernel {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.attributes.contraction().inner;
  static constexpr extent rows = extent(group_of<P, G>::value.rows) * P::samples;
  using team = row_team<T, columns, 2 * int(sizeof(float))>;
  static constexpr int threads = team::threads, each = team::each;
  static constexpr extent blocks = team::blocks(rows);

  struct state {
    float x[team::most_held][each], z[team::most_held][each], sum;
  };
  struct shared {
    float sums[1][team::warps];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      mine.sum = 0;
      if (row >= rows) return;
      auto const read = [&](int held, int column) {
        load<each>(a.at<T const>(g.in[0]) + row * columns + column, mine.x[held]);
        load<each>(a.at<T const>(g.in[1]) + row * columns + column, mine.z[held]);
      };
      team::for_kept(thread, read);
      team::for_pieces(thread, read, [&](int held, int) {
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.sum += mine.x[held][i] * mine.z[held][i];
      });
    });
    team::reduce(
        block, [](state& mine, int) -> float& { return mine.sum; }, plus{}, block.shared().sums);
    block.part([&](int thread, state& mine) {
      extent const row = team::row(block, thread);
      if (row >= rows || thread % team::size != 0) return;
      float y[1]{mine.sum};
      finish<P, G, 1>(a, row, 0, y);
    });
  }
};

/// Each row times a number.
///
/// shape: x (R, C), s (R, 1) -> y (R, C)
/// cost:  one pass over x and y, bound by bytes
template <class P, int G>
struct row_scale_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns;
  using base = row_accesses<P, G, columns>;
  using base::each;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    base::for_access(block, a, [&](extent row, int column) {
      float x[each], s[1];
      load<each>(a.at<T const>(g.in[0]) + row * columns + column, x);
      load<1>(a.at<T const>(g.in[1]) + row, s);
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) x[i] *= s[0];
      finish<P, G, each>(a, row, column, x);
    });
  }
};

template <>
struct kernel_of<op_kind::row_dot> : one_kernel<row_dot_kernel> {};

template <>
struct kernel_of<op_kind::row_scale> : one_kernel<row_scale_kernel> {};

}  // namespace pp::cuda
