// SPDX-License-Identifier: BSL-1.0
//
// Row teams: the threads of a block that share a row. A team has n threads, a power of two, and
// each thread has every n-th piece of the row; a piece is one access. A narrow row has some lanes
// of a warp, so that a warp works on several rows; a wider row has enough warps for its elements to
// fit into their registers. If a row does not fit into the registers of any block, the pieces that
// do not fit are read again, mostly from the L2 cache. Blocks have at most 512 threads, so that a
// multiprocessor works on at least two rows: while one row waits for memory or at a barrier, the
// other is computed.
#pragma once

#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/backend/cuda/core/warp.hpp>
#include <pipe/backend/cuda/rows/row_division.hpp>

namespace pp::cuda {

/// Teams for rows of Columns elements of T, in blocks of at least `Least` threads. A thread keeps
/// `Bytes` bytes of each of its elements in registers.
///
/// shape: rows (R, Columns); `teams` rows per block, `size` threads per row, `each` elements per
///        access
template <class T, int Columns, int Bytes, int Least = 128>
struct row_team {
  static constexpr row_division division = row_division::of(Columns, int(sizeof(T)), Bytes);
  static constexpr int each = division.each, pieces = division.pieces,
                       piece_bytes = division.piece_bytes, most_threads = division.most_threads,
                       most_bytes = division.most_bytes;
  PIPE_HD static constexpr int trips_of(int team) { return (pieces + team - 1) / team; }

  /// Threads of a team.
  static constexpr int size = division.size;
  /// Whether the threads of a team can keep a row. If not, a thread keeps its first `kept` pieces,
  /// and has `spare` of the others at a time: it holds `most_held` pieces at once.
  static constexpr bool keeps = division.keeps();
  static constexpr int most_held = keeps ? trips_of(size) : (most_bytes - 16) / piece_bytes;
  static constexpr int spare = keeps ? 0 : most_held >= 4 ? 2 : 1, kept = most_held - spare;

  /// Threads, warps and teams of a block.
  static constexpr int threads = size > Least ? size : Least, warps = threads / warp_size;
  static constexpr int teams = threads / size;
  /// Resident blocks of a kernel that keeps nothing else: as many as have 64 registers for each
  /// thread.
  static constexpr int resident = threads < most_threads ? 0 : 2;
  static constexpr extent blocks(extent rows) { return (rows + teams - 1) / teams; }

  template <class Block>
  PIPE_HD PIPE_INLINE static extent row(Block const& block, int thread) {
    return block.position() * teams + thread / size;
  }

  /// Calls f(held, column) for each of the thread's pieces; `held` is the piece's index among those
  /// that the thread holds. For pieces that the thread does not keep, from index `kept` on,
  /// read(held, column) is called first: for `spare` pieces, so that their loads are in flight
  /// together.
  template <class Read, class F>
  PIPE_HD PIPE_INLINE static void for_pieces(int thread, Read read, F f) {
    for_kept(thread, f);
    if constexpr (!keeps)
      for (int trip = kept; trip < trips_of(size); trip += spare) {
        for_trips<spare>(thread, trip, kept, read);
        for_trips<spare>(thread, trip, kept, f);
      }
  }
  /// The same without reads.
  template <class F>
  PIPE_HD PIPE_INLINE static void for_pieces(int thread, F f) {
    for_pieces(thread, [](int, int) {}, f);
  }
  /// Calls f(held, column) for each piece that the thread keeps.
  template <class F>
  PIPE_HD PIPE_INLINE static void for_kept(int thread, F f) {
    for_trips<kept>(thread, 0, 0, f);
  }

  /// A reduction of each of Count numbers over a team: access(state, i) becomes op over the team's
  /// numbers, in all its threads. Called between phases.
  ///
  /// shape: Count numbers per thread -> Count per thread, equal in a team
  /// law:   butterflies in each warp, then over the warps of the team: the order of operations
  ///        depends on Columns and T only
  /// needs: `room` is in shared memory, and no other reduction uses it
  template <class Block, class Access, class Op, class X, int Count>
  PIPE_HD PIPE_INLINE static void reduce(Block& block, Access access, Op op,
                                         X (&room)[Count][warps]) {
    using state = typename Block::state;
    fold<(size < warp_size ? size : warp_size), Count>(block, access, op);
    if constexpr (size > warp_size) {
      constexpr int together = size / warp_size;  // warps, each of which folds the results of all
      block.phase([&](int thread, state& mine) {
        if (thread % warp_size != 0) return;
        PIPE_UNROLL
        for (int i = 0; i < Count; ++i) room[i][thread / warp_size] = access(mine, i);
      });
      block.part([&](int thread, state& mine) {
        PIPE_UNROLL
        for (int i = 0; i < Count; ++i)
          access(mine, i) = room[i][thread / size * together + thread % together];
      });
      fold<together, Count>(block, access, op);
    }
  }

  /// The same for a team within a warp, without room.
  template <int Count, class Block, class Access, class Op>
  PIPE_HD PIPE_INLINE static void reduce(Block& block, Access access, Op op) {
    static_assert(size <= warp_size);
    fold<size, Count>(block, access, op);
  }

 private:
  /// Calls f for Count pieces of a thread, from piece `trip` on, held from index `held` on.
  template <int Count, class F>
  PIPE_HD PIPE_INLINE static void for_trips(int thread, int trip, int held, F f) {
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      int const column = ((trip + i) * size + thread % size) * each;
      if ((trip + i + 1) * size <= pieces || column < Columns) f(held + i, column);
    }
  }

  template <int Width, int Count, class Block, class Access, class Op>
  PIPE_HD PIPE_INLINE static void fold(Block& block, Access access, Op op) {
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i)
      reduce_lanes<Width>(
          block, [&](typename Block::state& mine) -> auto& { return access(mine, i); }, op);
  }
};

}  // namespace pp::cuda
