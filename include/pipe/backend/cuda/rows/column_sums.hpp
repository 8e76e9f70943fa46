// SPDX-License-Identifier: BSL-1.0
//
// Sums over rows: the gradients of biases, of tables of positions, and of a norm's scale and shift.
// Many blocks share the rows in chunks, which take rows in turn; the sum of a chunk is written to
// the workspace, and the last block adds the chunks. The plan of chunks depends on the shape alone,
// so the order of every sum is the same on every GPU; with padding behind the real rows, chunks
// have nearly equal numbers of real rows.
//
// The summands are a source:
//
//     struct some_source {
//       using T = ...;                          // of elements
//       static constexpr extent rows, columns;  // rows of `columns` elements
//       static constexpr int sums;              // of each column
//       template <int Count>
//       static void read(arguments const&, extent row, extent column,
//                        float (&terms)[sums][Count]);
//       static float* target(arguments const&, int sum);  // float[columns]
//     };
//
// A source may have further members:
//
//       static constexpr extent together;      // neighbours in memory: a divisor of `columns`
//       static constexpr extent groups;        // of `rows` each, one behind another, with own sums
//       static constexpr long kept_bytes;      // of the workspace, from its first on, that it uses
//       static extent count(arguments const&); // rows of all groups at run time; of one group it
//                                              // may be more than `rows`
//       static int each(arguments const&);     // what all rows of a thread are found with
//       // the row that is read for a row of the sum; -1: zeros
//       static extent find(arguments const&, extent row, int each);
//       template <int Count> struct known;     // of a column, what all of its rows are read with:
//       template <int Count>
//       static void learn(arguments const&, extent group, extent column, known<Count>&);
//       ... read(arguments const&, extent row, extent column, known<Count> const&, ... terms);
//       template <int Count>                   // in place of target
//       static void take(arguments const&, extent group, extent column,
//                        float const (&sum)[sums][Count]);
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>

namespace pp::cuda {

/// *to (+)= of, for Count neighbours.
template <int Count>
PIPE_HD PIPE_INLINE void add_to_sum(bool accumulate, float* to, float (&of)[Count]) {
  if (accumulate) {
    float before[Count];
    load<Count>(to, before);
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) of[i] = before[i] + of[i];
  }
  save<Count>(to, of);
}

/// The division of a source among blocks of `threads` threads: strips of columns times chunks of
/// rows. In a block, `lanes` neighbouring threads have neighbouring pieces of a row; the other
/// threads have the same pieces of other rows.
template <class T>
struct column_plan {
  static constexpr int threads = 256;
  int each, lanes, rows_at_once;
  extent strips, chunks;

  /// The plan for a shape, with accesses that divide `together` columns.
  ///
  /// law: depends on the shape alone, never on the GPU
  static constexpr column_plan of(extent rows, extent columns, extent together) {
    column_plan p{};
    p.each = 16 / int(sizeof(T));
    while (together % p.each != 0) p.each /= 2;
    extent const pieces = columns / p.each;
    int apart = 1;  // the minimum of rows_at_once
    while (apart < 8 && apart < rows) apart *= 2;
    p.lanes = 1;
    while (p.lanes < pieces && p.lanes < threads / apart) p.lanes *= 2;
    p.rows_at_once = threads / p.lanes;
    p.strips = (pieces + p.lanes - 1) / p.lanes;
    // As many blocks as run at once, if four share each of 132 multiprocessors, but every thread
    // has at least eight rows to add.
    extent const busy = 528, wanted = (busy + p.strips - 1) / p.strips,
                 most = rows / (8 * p.rows_at_once);
    p.chunks = most < 1 ? 1 : wanted < most ? wanted : most;
    return p;
  }
};

/// The columns of a source that are neighbours in memory: Source::together, or all.
template <class Source>
constexpr extent together_in() {
  if constexpr (requires { Source::together; })
    return Source::together;
  else
    return Source::columns;
}

/// The groups of rows with sums of their own: Source::groups, or one.
template <class Source>
constexpr extent groups_in() {
  if constexpr (requires { Source::groups; })
    return Source::groups;
  else
    return 1;
}

/// The bytes at the start of the workspace that a source uses itself.
template <class Source>
constexpr long kept_bytes_of() {
  if constexpr (requires { Source::kept_bytes; })
    return Source::kept_bytes;
  else
    return 0;
}

/// Sums of columns over all rows of a group.
///
/// shape: the source's terms (groups, R, C) -> sums (groups, C); with several chunks also (groups,
///        chunks, C) in the workspace
/// law:   chunks take rows_at_once rows in turn, each thread of a column one of them; a thread adds
///        its rows in order, then threads of a column are added by halves, then chunks are added in
///        the same way; accumulate adds the finished sum once. The place of a row in the sum
///        depends on its number alone, not on the number of groups
/// work:  a block has a chunk of a strip of a group; the last block of a strip adds the chunks of
///        its group, or of several groups if there are not enough tickets
/// cost:  one pass over the source, bound by bytes: all blocks run at once, and a thread has up to
///        32 loads in flight
template <class Source>
struct column_sums_kernel {
  using T = typename Source::T;
  static constexpr column_plan<T> plan =
      column_plan<T>::of(Source::rows, Source::columns, together_in<Source>());
  static constexpr int threads = plan.threads, each = plan.each, lanes = plan.lanes,
                       rows_at_once = plan.rows_at_once;
  static constexpr int sums = Source::sums, resident = sums == 1 ? 4 : 0;
  static constexpr extent chunks = plan.chunks, strips = plan.strips;
  static constexpr extent groups = groups_in<Source>(), blocks = groups * strips * chunks;
  static constexpr long kept_bytes = kept_bytes_of<Source>();
  static constexpr long workspace_bytes =
      kept_bytes +
      (chunks == 1 ? 0 : long(groups * chunks * Source::columns) * sums * long(sizeof(float)));
  static_assert(chunks == 1 || strips <= most_tickets);
  /// The number of groups whose blocks share tickets, of which each such set of groups has
  /// `strips`.
  static constexpr extent most_sets = chunks == 1 ? groups : most_tickets / strips,
                          joint = (groups + most_sets - 1) / most_sets;
  /// Whether the source has `take` in place of `target`.
  static constexpr bool takes =
      requires(arguments const& a, extent i, float const (&sum)[sums][each]) {
        Source::template take<each>(a, i, i, sum);
      };
  static_assert(groups == 1 || takes);

  struct state {
    float sum[sums][each];
  };
  struct shared {
    float sum[sums][each][threads];
    bool is_last;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    extent const strip = block.position() % strips, row = block.position() / strips,
                 group = groups > 1 ? row / chunks : 0, chunk = row - group * chunks;
    extent const all = count(a), first = group * Source::rows, behind = first + Source::rows;
    sum_rows<Source, chunks>(block, a, group, strip, first + chunk * rows_at_once,
                             groups > 1 && behind < all ? behind : all);
    if constexpr (chunks == 1) {
      hand_on(block, a, group, strip);
    } else {
      for_columns(block, strip, [&](extent column, state& mine) {
        PIPE_UNROLL
        for (int s = 0; s < sums; ++s) save<each>(chunk_sums::at(a, row, s) + column, mine.sum[s]);
      });
      extent const set = group / joint, from = set * joint,
                   to = from + joint < groups ? from + joint : groups;
      if (!is_last_block(block, a.tickets + set * strips + strip, unsigned((to - from) * chunks),
                         block.shared().is_last))
        return;
      for (extent g = from; g < to; ++g) {
        sum_rows<chunk_sums, 1>(block, a, g, strip, g * chunks, (g + 1) * chunks);
        hand_on(block, a, g, strip);
      }
    }
  }

 private:
  /// The sums of chunks in the workspace, as a source with `chunks` rows for each group.
  struct chunk_sums {
    PIPE_HD PIPE_INLINE static float* at(arguments const& a, extent row, int sum) {
      return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + kept_bytes) +
             (row * sums + sum) * Source::columns;
    }
    template <int Count>
    PIPE_HD PIPE_INLINE static void read(arguments const& a, extent row, extent column,
                                         float (&terms)[sums][Count]) {
      PIPE_UNROLL
      for (int s = 0; s < sums; ++s) load<Count>(at(a, row, s) + column, terms[s]);
    }
  };

  /// Passes the complete sums of a strip of a group to the source.
  template <class Block>
  PIPE_HD PIPE_INLINE static void hand_on(Block& block, arguments const& a, extent group,
                                          extent strip) {
    for_columns(block, strip, [&](extent column, state& mine) {
      if constexpr (takes)
        Source::template take<each>(a, group, column, mine.sum);
      else
        add_to_target(a, column, mine.sum);
    });
  }
  /// Writes sums to their targets, or adds them to the sums of earlier micro-batches.
  PIPE_HD PIPE_INLINE static void add_to_target(arguments const& a, extent column,
                                                float (&sum)[sums][each]) {
    PIPE_UNROLL
    for (int s = 0; s < sums; ++s) add_to_sum(a.accumulate, Source::target(a, s) + column, sum[s]);
  }
  PIPE_HD PIPE_INLINE static extent count([[maybe_unused]] arguments const& a) {
    if constexpr (requires { Source::count(a); })
      return Source::count(a);
    else
      return groups * Source::rows;
  }
  /// Reads the terms of a row of From, with `known` of the column if From has it; zeros for a row
  /// that From does not find.
  template <class From>
  struct reader {
    int each_row = 1;
    PIPE_HD PIPE_INLINE void learn([[maybe_unused]] arguments const& a, extent, extent) {
      if constexpr (requires { &From::find; }) each_row = From::each(a);
    }
    PIPE_HD PIPE_INLINE void read(arguments const& a, extent row, extent column,
                                  float (&terms)[sums][each]) const {
      if constexpr (requires { &From::find; })
        if (row = From::find(a, row, each_row); row < 0) return clear(terms);
      From::template read<each>(a, row, column, terms);
    }
  };
  template <class From>
    requires requires { typename From::template known<1>; }
  struct reader<From> {
    typename From::template known<each> known;
    PIPE_HD PIPE_INLINE void learn(arguments const& a, extent group, extent column) {
      From::template learn<each>(a, group, column, known);
    }
    PIPE_HD PIPE_INLINE void read(arguments const& a, extent row, extent column,
                                  float (&terms)[sums][each]) const {
      From::template read<each>(a, row, column, known, terms);
    }
  };

  PIPE_HD PIPE_INLINE static extent column_of(int thread, extent strip) {
    return (strip * lanes + thread % lanes) * each;
  }
  /// Calls f(column, state) in the threads that have the sums of a strip's columns.
  template <class Block, class F>
  PIPE_HD PIPE_INLINE static void for_columns(Block& block, extent strip, F f) {
    block.part([&](int thread, state& mine) {
      extent const column = column_of(thread, strip);
      if (thread < lanes && column < Source::columns) f(column, mine);
    });
  }

  /// Sums rows of a strip of a group before `end`, rows_at_once rows from `begin` on and from each
  /// Turns * rows_at_once rows further; the first `lanes` threads have the sums in their states.
  template <class From, extent Turns, class Block>
  PIPE_HD PIPE_INLINE static void sum_rows(Block& block, arguments const& a, extent group,
                                           extent strip, extent begin, extent end) {
    block.phase([&](int thread, state& mine) {
      clear(mine.sum);
      extent const column = column_of(thread, strip);
      if (column < Source::columns)
        add_rows<From, Turns * rows_at_once>(a, group, begin + thread / lanes, end, column,
                                             mine.sum);
      leave(block, thread, mine);
    });
    for (int half = rows_at_once / 2; half > 0; half /= 2) {
      block.phase([&](int thread, state& mine) {
        if (thread >= half * lanes) return;
        PIPE_UNROLL
        for (int s = 0; s < sums; ++s) {
          PIPE_UNROLL
          for (int i = 0; i < each; ++i)
            mine.sum[s][i] += block.shared().sum[s][i][thread + half * lanes];
        }
        leave(block, thread, mine);
      });
    }
  }
  template <class Block>
  PIPE_HD PIPE_INLINE static void leave(Block& block, int thread, state const& mine) {
    PIPE_UNROLL
    for (int s = 0; s < sums; ++s) {
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) block.shared().sum[s][i][thread] = mine.sum[s][i];
    }
  }

  /// Adds every Apart-th row from `row` on, in order, with the loads of several rows in flight.
  template <class From, extent Apart>
  PIPE_HD PIPE_INLINE static void add_rows(arguments const& a, extent group, extent row, extent end,
                                           extent column, float (&sum)[sums][each]) {
    constexpr int fit = 32 / (sums * each), together = fit < 2 ? 2 : fit;
    float terms[together][sums][each];
    reader<From> from;
    from.learn(a, group, column);
    for (; row + (together - 1) * Apart < end; row += together * Apart) {
      PIPE_UNROLL
      for (int k = 0; k < together; ++k) from.read(a, row + k * Apart, column, terms[k]);
      PIPE_UNROLL
      for (int k = 0; k < together; ++k) add(terms[k], sum);
    }
    for (; row < end; row += Apart) {
      from.read(a, row, column, terms[0]);
      add(terms[0], sum);
    }
  }
  PIPE_HD PIPE_INLINE static void clear(float (&of)[sums][each]) {
    PIPE_UNROLL
    for (int s = 0; s < sums; ++s) {
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) of[s][i] = 0;
    }
  }
  PIPE_HD PIPE_INLINE static void add(float const (&terms)[sums][each], float (&sum)[sums][each]) {
    PIPE_UNROLL
    for (int s = 0; s < sums; ++s) {
      PIPE_UNROLL
      for (int i = 0; i < each; ++i) sum[s][i] += terms[s][i];
    }
  }
};

}  // namespace pp::cuda
