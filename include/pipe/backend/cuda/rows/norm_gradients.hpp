// SPDX-License-Identifier: BSL-1.0
//
// All gradients of a norm in one pass: the gradient of its input, row by row, and the gradients of
// its scale and shift, which are sums over all rows. Blocks take rows in turn, one for each of
// their teams, and threads keep the sums of their columns in registers; the last blocks add the
// sums of blocks.
// The sums alone are computed by the same code, so bits do not depend on whether a schedule runs
// them together with the gradient of the input.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/rows/row_sources.hpp>
#include <pipe/backend/cuda/rows/rowwise.hpp>

namespace pp::cuda {

/// The addition of the parts of blocks in two rounds: the last block of a group of `per_group`
/// neighbours adds the parts of the group, and the last of these blocks adds the sums of groups,
/// both in order.
///
/// shape: parts (parts, Columns) in the workspace -> sums (Columns)
/// law:   the order of the sum depends on the shape alone
/// cost:  the last blocks read about 2 sqrt(parts) parts one after the other
struct sum_tree {
  extent parts, per_group, groups;
  static constexpr sum_tree of(extent parts) {
    extent per_group = 1;
    while (per_group * per_group < parts) ++per_group;
    return {parts, per_group, (parts + per_group - 1) / per_group};
  }
};

/// The number of blocks that R rows are divided among, of which a block takes a row for each of its
/// teams in turn.
///
/// law: depends on the shape alone, not on the GPU, and so does the order of every sum
constexpr extent row_chunks(extent rows, int teams) {
  // All blocks run at once, if two share each of 132 multiprocessors; the least rows of a team.
  constexpr extent most = 264, least_trips = 4;
  extent trips = (rows + most * teams - 1) / (most * teams);
  if (trips < least_trips) trips = least_trips;
  return (rows + trips * teams - 1) / (trips * teams);
}

/// The state of a thread for the gradient of a norm's input, by group G of P; empty for G = -1.
///
/// z: second operands of the epilogue, whose loads are issued before the row's reduction
template <class P, int G>
struct norm_input_gradient {
  using kernel = norm_gradient_kernel<P, G>;
  using seconds = typename chain<P, G, true>::template seconds<kernel::each>;
  struct state : kernel::state {
    seconds z[kernel::team::most_held];
  };
};
template <class P>
struct norm_input_gradient<P, -1> {
  struct state {};
};

/// By group Sums of P: dgamma (+)= sum over rows of dy * xhat, dbeta (+)= sum of dy. By group
/// Input, unless Input is -1: dx, as by norm_gradient_kernel.
///
/// shape: dy, x (R, C), statistics (R, 2) -> dgamma, dbeta (C), either of which may be absent;
///        parts (chunks + groups, sums, C) in the workspace
/// law:   a thread adds the rows of its team in order, then teams are added in order, then blocks
///        by sum_tree; accumulate adds the finished sum once. The place of a row in the sum depends
///        on its number alone
/// work:  blocks take rows in turn, one for each team
/// needs: a team keeps a row in registers, see divide_norm_row(); wider rows are summed by
///        column_sums_kernel
/// cost:  every row is read once, bound by bytes
template <class P, int Sums, int Input>
struct norm_rows {
  using T = typename P::element;
  static constexpr detail::group of_sums = group_of<P, Sums>::value;
  static constexpr int gamma = of_sums.out[0], beta = of_sums.out[1];
  static constexpr int sums = (gamma >= 0) + (beta >= 0);
  static constexpr int columns = of_sums.columns;
  static constexpr extent rows = extent(of_sums.rows) * P::samples;
  static constexpr bool makes_input = Input >= 0;
  using team = row_team<T, columns, 2 * int(sizeof(float)), 256>;
  static constexpr int threads = team::threads, each = team::each, most_held = team::most_held;
  /// In small blocks a thread may have the registers that two resident blocks allow: for a row, its
  /// sums and the parts that the last block adds.
  static constexpr int resident = threads <= 256 ? 2 : 0;
  static constexpr extent chunks = row_chunks(rows, team::teams);
  static constexpr sum_tree tree = sum_tree::of(chunks);
  static constexpr int width = sums * columns;  // floats of a part
  static constexpr long workspace_bytes =
      chunks == 1 ? 0 : long(chunks + tree.groups) * width * long(sizeof(float));
  static_assert(tree.groups < most_tickets);

  using input = norm_input_gradient<P, Input>;
  struct state : input::state {
    float total[sums][most_held][each];
  };
  struct shared {
    float rooms[2][2][makes_input ? team::warps : 1];  // of reductions, used in trip
    alignas(16) float total[team::teams > 1 ? team::teams : 1][team::teams > 1 ? width : 4];
    bool is_last;
  };

  /// The body: one loop over rows, with the sums in registers. s: the operands of group Sums; g: of
  /// group Input.
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& s, arguments const& g) {
    block.part([&](int, state& mine) {
      PIPE_UNROLL
      for (int k = 0; k < sums; ++k) {
        PIPE_UNROLL
        for (int held = 0; held < most_held; ++held) {
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) mine.total[k][held][i] = 0;
        }
      }
    });
    int trip = 0;
    extent const behind = of_rows::planned_end(s);
    for (extent first = block.position() * team::teams; first < behind;
         first += chunks * team::teams, ++trip) {
      // Two rooms, used in trip: a warp may begin the next reduction while others read the results
      // of the last one.
      if constexpr (makes_input)
        both(block, g, first, trip % 2);
      else
        block.part([&](int thread, state& mine) {
          if (extent row = 0; find(s, first, thread, row))
            team::for_kept(thread, [&](int held, int column) {
              float dy[each], x[each], xhat[each];
              load<each>(s.at<T const>(of_sums.in[0]) + row * columns + column, dy);
              if constexpr (gamma >= 0) {
                load<each>(s.at<T const>(of_sums.in[1]) + row * columns + column, x);
                normalise(s, row, x, xhat);
              }
              add(mine, held, dy, xhat);
            });
        });
    }
    leave_part(block, s);
  }

 private:
  using of_rows = launch_rows<P, Sums>;
  /// Finds the row of a thread's team among planned rows from `first` on. False if it is not there.
  PIPE_HD PIPE_INLINE static bool find(arguments const& a, extent first, int thread, extent& row) {
    row = first + thread / team::size;
    if (row >= of_rows::planned_end(a)) return false;
    if constexpr (of_rows::vary) row = of_rows::find(a, row, of_rows::each(a));
    return !of_rows::vary || row >= 0;
  }
  /// xhat of a piece of x, from the statistics of its row.
  PIPE_HD PIPE_INLINE static void normalise(arguments const& s, extent row, float const (&x)[each],
                                            float (&xhat)[each]) {
    float statistics[2];
    load<2>(s.at<float const>(of_sums.in[2]) + 2 * row, statistics);
    PIPE_UNROLL
    for (int i = 0; i < each; ++i) xhat[i] = (x[i] - statistics[0]) * statistics[1];
  }
  /// Adds a piece of a row to the thread's sums.
  PIPE_HD PIPE_INLINE static void add(state& mine, int held, float const (&dy)[each],
                                      float const (&xhat)[each]) {
    PIPE_UNROLL
    for (int i = 0; i < each; ++i) {
      if constexpr (gamma >= 0)
        mine.total[0][held][i] = math::multiply_add(dy[i], xhat[i], mine.total[0][held][i]);
      if constexpr (beta >= 0) mine.total[sums - 1][held][i] += dy[i];
    }
  }

  /// For a row of each team: adds it to the sums, and computes dx.
  template <class Block>
  PIPE_HD PIPE_INLINE static void both(Block& block, arguments const& g, extent first, int room) {
    using kernel = typename input::kernel;
    using after = chain<P, Input, true>;
    block.part([&](int thread, state& mine) {
      extent row = 0;
      mine.sum[0] = mine.sum[1] = 0;
      if (!find(g, first, thread, row)) return;
      team::for_kept(thread, [&](int held, int column) {
        kernel::read(g, row, column, mine, held);
        after::template fetch<each>(g, row, column, mine.z[held]);
      });
      team::for_kept(thread, [&](int held, int column) {
        float dy[each];
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) dy[i] = mine.g[held][i];
        kernel::scale(g, row, column, mine, held);
        add(mine, held, dy, mine.xhat[held]);
        kernel::add(mine, held);
      });
    });
    team::reduce(
        block, [](state& mine, int i) -> float& { return mine.sum[i]; }, plus{},
        block.shared().rooms[room]);
    block.part([&](int thread, state& mine) {
      extent row = 0;
      if (!find(g, first, thread, row)) return;
      team::for_kept(thread, [&](int held, int column) {
        float dx[each];
        kernel::finish_piece(mine, held, dx);
        finish<P, Input, each>(g, row, column, dx, mine.z[held]);
      });
    });
  }

  /// Part number `part` in the workspace: first the parts of blocks, then the sums of groups of
  /// blocks.
  PIPE_HD PIPE_INLINE static float* part_at(arguments const& s, extent part) {
    return static_cast<float*>(s.workspace) + part * width;
  }
  /// Adds the sums of the block's teams and writes them to the block's part of the workspace, or,
  /// with one chunk, to the results. The last blocks then add the parts.
  template <class Block>
  PIPE_HD PIPE_INLINE static void leave_part(Block& block, arguments const& s) {
    auto const take = [&](int k, int column, float(&v)[each]) {
      if constexpr (chunks > 1)
        save<each>(part_at(s, block.position()) + k * columns + column, v);
      else
        keep(s, k, column, v);
    };
    // With a single team, the sums of its threads are complete.
    if constexpr (team::teams == 1) {
      block.part([&](int thread, state& mine) {
        for_totals(thread,
                   [&](int k, int held, int column) { take(k, column, mine.total[k][held]); });
      });
    } else {
      block.phase([&](int thread, state& mine) {
        for_totals(thread, [&](int k, int held, int column) {
          for_quads([&](int quad) {
            float v[in_quad];
            PIPE_UNROLL
            for (int i = 0; i < in_quad; ++i) v[i] = mine.total[k][held][quad * in_quad + i];
            save<in_quad, memory_space::shared>(
                &block.shared().total[thread / team::size][place(k * columns + column, quad)], v);
          });
        });
      });
      block.part([&](int thread, state&) {
        for (int at = thread * each; at < width; at += threads * each) {
          float v[each];
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) v[i] = 0;
          for (int t = 0; t < team::teams; ++t)
            for_quads([&](int quad) {
              float of[in_quad];
              load<in_quad>(&block.shared().total[t][place(at, quad)], of);
              PIPE_UNROLL
              for (int i = 0; i < in_quad; ++i) v[quad * in_quad + i] += of[i];
            });
          take(at / columns, at % columns, v);
        }
      });
    }
    // The last block of a group adds the group's parts, and the last of these blocks adds the sums
    // of groups.
    if constexpr (chunks > 1) {
      extent const group = block.position() / tree.per_group;
#ifdef __CUDA_ARCH__
#pragma unroll 1  // one copy of code that few blocks run
#endif
      for (int round = 0; round < 2; ++round) {
        extent const begin = round == 0 ? group * tree.per_group : extent(tree.parts),
                     most = round == 0 ? extent(tree.per_group) : extent(tree.groups),
                     behind = round == 0 ? extent(tree.parts) : tree.parts + tree.groups,
                     end = begin + most < behind ? begin + most : behind;
        if (!is_last_block(block, s.tickets + (round == 0 ? group : extent(tree.groups)),
                           unsigned(end - begin), block.shared().is_last))
          return;
        add_parts(block, s, begin, end, [&](int at, float(&v)[each]) {
          if (round == 0)
            save<each>(part_at(s, tree.parts + group) + at, v);
          else
            keep(s, at / columns, at % columns, v);
        });
      }
    }
  }
  /// The layout of sums in shared memory: the first quads of all pieces, then their second quads,
  /// so that neighbouring threads access neighbouring quads.
  static constexpr int in_quad = each < 4 ? each : 4;
  PIPE_HD PIPE_INLINE static int place(int at, int quad) {
    return (quad * (width / each) + at / each) * in_quad;
  }
  template <class F>
  PIPE_HD PIPE_INLINE static void for_quads(F f) {
    PIPE_UNROLL
    for (int quad = 0; quad < each / in_quad; ++quad) f(quad);
  }
  /// Calls f(sum, held, column) for each of the thread's pieces of each sum.
  template <class F>
  PIPE_HD PIPE_INLINE static void for_totals(int thread, F f) {
    team::for_kept(thread, [&](int held, int column) {
      PIPE_UNROLL
      for (int k = 0; k < sums; ++k) f(k, held, column);
    });
  }
  /// Adds the next Count parts, whose loads are in flight at once.
  template <int Count>
  PIPE_HD PIPE_INLINE static void add_next(arguments const& s, extent& part, int at,
                                           float (&v)[each]) {
    float of[Count][each];
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k) load<each>(part_at(s, part + k) + at, of[k]);
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k) {
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) v[i] += of[k][i];
    }
    part += Count;
  }
  /// Adds parts [begin, end) in order, and calls f(place, sum).
  template <class Block, class F>
  PIPE_HD PIPE_INLINE static void add_parts(Block& block, arguments const& s, extent begin,
                                            extent end, F f) {
    block.part([&](int thread, state&) {
      for (int at = thread * each; at < width; at += threads * each) {
        float v[each];
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) v[i] = 0;
        extent part = begin;
        while (part + 8 <= end) add_next<8>(s, part, at, v);
        if (part + 4 <= end) add_next<4>(s, part, at, v);
        if (part + 2 <= end) add_next<2>(s, part, at, v);
        if (part < end) add_next<1>(s, part, at, v);
        f(at, v);
      }
    });
  }
  /// Stores a finished piece of sum k, or adds it to the sum of earlier micro-batches.
  ///
  /// needs: called by one block only, the last one
  PIPE_HD PIPE_INLINE static void keep(arguments const& s, int k, int column, float (&v)[each]) {
    add_to_sum(s.accumulate, s.at<float>(k == 0 && gamma >= 0 ? gamma : beta) + column, v);
  }
};

/// The sums alone, for a schedule that runs them apart from the gradient of the input, or for a
/// norm whose input needs no gradient.
///
/// shape: dy, x (R, C), statistics (R, 2) -> dgamma, dbeta (C)
/// law:   the bits of norm_gradients_kernel
/// work:  blocks take rows in turn
template <class P, int G>
struct norm_sums_kernel : norm_rows<P, G, -1> {
  using base = norm_rows<P, G, -1>;
  static constexpr extent blocks = base::chunks;
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::run(block, a, a);
  }
};

/// The operands of both groups of a norm's gradients.
///
/// units: both are the arguments of the joint launch, but with the indices of their group
struct norm_arguments {
  arguments sums, input;
};
/// The sums and the gradient of the input, as one launch.
///
/// shape: dy, x (R, C), gamma (C), statistics (R, 2) -> dx (R, C), dgamma, dbeta (C)
/// law:   the bits of norm_sums_kernel and norm_gradient_kernel
/// work:  blocks take rows in turn, one for each team
/// cost:  dy and x are read once instead of twice, and a launch is saved
template <class P, int Sums, int Input>
struct norm_gradients_kernel : norm_rows<P, Sums, Input> {
  using base = norm_rows<P, Sums, Input>;
  using arguments = norm_arguments;
  static constexpr extent blocks(arguments const&) { return base::chunks; }
  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    base::run(block, a.sums, a.input);
  }
};

/// The kernel of the sums alone: column_sums_kernel for wide rows, which no team keeps.
template <class P, int G>
constexpr auto lower_norm_sums() {
  if constexpr (divide_norm_row(group_of<P, G>::value.columns, int(sizeof(typename P::element)))
                    .keeps())
    return kernel_list<norm_sums_kernel<P, G>>{};
  else
    return kernel_list<column_sums_kernel<norm_parameter_source<P, G>>>{};
}
template <>
struct kernel_of<op_kind::norm_parameter_gradient> {
  template <class P, int G>
  using list = decltype(lower_norm_sums<P, G>());
};

/// A chain of the two launches of a norm's gradients.
template <class P, int Sums, int Input>
struct norm_gradients {
  static constexpr int launches = 2;
  using kernel = norm_gradients_kernel<P, Sums, Input>;
  using arguments = norm_arguments;
  static constexpr auto kernels() { return kernel_list<kernel>{}; }
  static constexpr long workspace_bytes = kernel::workspace_bytes;

  /// The arguments of the kernel: `each`, with the operands of both launches, which are in
  /// `operand`
  /// one after the other.
  static arguments pack(cuda::arguments const& each, void* const* operand) {
    arguments a{each, each};
    for (int i = 0; i < group_of<P, Sums>::value.operands; ++i) a.sums.operand[i] = *operand++;
    for (int i = 0; i < group_of<P, Input>::value.operands; ++i) a.input.operand[i] = *operand++;
    return a;
  }
};

}  // namespace pp::cuda
