// SPDX-License-Identifier: BSL-1.0
//
// Attention without the score matrix: each block of queries goes through the blocks of keys, each
// row keeps a running maximum and sum, and earlier output is rescaled when the maximum grows.
// Milakov, Gimelshein, 2018; Dao et al., FlashAttention, 2022.
#pragma once

#include <cstddef>
#include <cstring>

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/attention_factors.hpp>
#include <pipe/backend/host/attention_loops.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Sets the state of rows that may see no key of the first blocks, or no key at all: empty sums.
template <class T>
void begin_rows(softmax_rows<T> const& state, extent rows) {
  std::memset(state.out, 0, sizeof(T) * static_cast<std::size_t>(rows * state.ldo));
  for (extent r = 0; r < rows; ++r) {
    state.largest[r] = -static_cast<T>(__builtin_huge_val());
    state.sum[r] = T(0);
  }
}
/// Gives rows that have seen no key the state from which finish_rows makes zeros.
template <class T>
void end_rows(softmax_rows<T> const& state, extent rows) {
  for (extent r = 0; r < rows; ++r)
    if (state.sum[r] == T(0)) {
      state.largest[r] = T(0);
      state.sum[r] = T(1);
    }
}

/// Queries [first, first + rows) of one head, as rotated.
template <class Block>
struct query_rows {
  extent head, first, rows;  ///< rows <= query_block
  Block at;                  ///< from query `first` and the head on
};

/// Online softmax over blocks of keys for a block of queries of one head. Afterwards `state` has
/// the sums of e^(score - largest) * value and of e^(score - largest); set.finish divides the first
/// by the second.
///
/// by:    what multiplies; query, of: factors that it reads
/// shape: query (rows, d), of (S, d) -> state
/// law:   the sums of a row do not depend on the rows beside it
/// cost:  blocks that no query sees are skipped; within a block, tiles end at the last visible key
template <class By, class T, class Block, class Head>
PIPE_ONE_COPY void attend(By const& by, attention_shape const& shape, T scale,
                          query_rows<Block> const& query, Head const& of, T* scores,
                          softmax_rows<T> const& state) {
  attention_set<T> const& set = by.set;
  extent const d = shape.head_size, padded = state.ldo, t0 = query.first, rows = query.rows;
  extent const seen = visible_keys(shape, of.present, t0 + rows - 1, 0);
  bool begun = set.begin != nullptr;  // whether `state` has sums
  if (begun) set.begin(state, rows);
  double const slope = slope_of(shape, query.head);
  for (extent s0 = shape.first_key(t0) / key_block * key_block; s0 < seen; s0 += key_block) {
    extent const count = shape.keys - s0 < key_block ? shape.keys - s0 : key_block;
    if (shape.mask != nullptr && !mask_shows(shape, t0, rows, s0, count)) continue;
    int high = 0;
    for (extent i = 0; i < rows; i += high) {
      high = by.next_queries(rows - i);
      extent depth = visible_keys(shape, of.present, t0 + i + high - 1, s0);
      if (depth > count) depth = count;
      extent const columns = round_up(depth, by.column_alignment());
      T* const score = scores + i * key_block;
      if (depth > 0)
        by.multiply({high, columns, d}, query.at.left_from(i), of.columns_from(s0, d), score,
                    key_block, false);
      for (extent r = i; depth > 0 && r < i + high; ++r) {
        extent visible = visible_keys(shape, of.present, t0 + r, s0);
        if (visible > count) visible = count;
        set.softmax_row(shape, {shape.place(t0 + r), s0, slope, visible, columns},
                        scores + r * key_block, scale, !begun, state, r);
      }
      if (depth > 0)
        by.multiply({high, padded, depth}, strided<T const>{score, key_block, 1},
                    of.rows_from(s0, padded), state.out + i * padded, padded, begun);
    }
    begun = true;
  }
  if (set.end != nullptr) set.end(state, rows);
}

/// set.finish to values in memory.
template <class T, class V>
void write_results(attention_set<T> const& set,
                   [[maybe_unused]] value_rows<T, V> const& conversions,
                   softmax_rows<T> const& state, extent rows, extent d, positions<V> to, T* lse,
                   extent lse_stride) {
  if constexpr (in_place<T, V>) {
    set.finish(state, rows, d, to.data, to.stride, lse, lse_stride);
  } else {
    set.finish(state, rows, d, state.out, state.ldo, lse, lse_stride);
    conversions.narrow(state.out, state.ldo, rows, d, to.data, to.stride);
  }
}

/// attention_forward by one unit.
template <class By, class T, class V>
PIPE_ONE_COPY void attend_heads(attention_set<T> const& set, attention_shape const& all,
                                attention_operands<T, V> const& with,
                                attention_results<V, T> const& to, void* workspace,
                                part_range own) {
  positions<V const> const q = with.q, k = with.k, v = with.v;
  positions<V> const out = to.out;
  By by(set, with, all.head_size);
  extent const d = all.head_size, group = all.heads / all.kv_heads, padded = by.padded;
  attention_parts<T> const part = by.parts(all);
  carver<T> space{static_cast<T*>(workspace)};
  by.take_rooms(space, part);
  auto* const keys = by.take(space, part.columns);
  auto* const values = by.take(space, part.rows);
  auto query = by.take_block(space, part);
  T* const scores = space.take(part.scores);
  T* const sums = space.take(part.query_rows);
  T* const rotated = space.take(part.query_rows);
  T* const largest = space.take(part.per_query);
  T* const sum = space.take(part.per_query);
  softmax_rows<T> const state{sums, padded, largest, sum};

  extent const end = within(own, all.samples * all.kv_heads).end * group;
  for (extent head = own.begin * group; head < end; ++head) {
    extent const b = head / all.heads, h = head % all.heads, key_row = all.first_key_row(b),
                 query_row = all.first_query_row(b);
    attention_shape const shape = all.of_sample(b);
    extent const present =
        present_keys(with.ids != nullptr ? with.ids + key_row : nullptr, shape.keys);
    if (h % group == 0) {
      extent const at = h / group * d;
      by.make({k.data + key_row * k.stride + at, k.stride}, present, with.rotation, nullptr, keys,
              values);
      by.make({v.data + key_row * v.stride + at, v.stride}, present, nullptr, values, nullptr,
              nullptr);
    }
    for (extent t0 = 0; t0 < shape.queries; t0 += query_block) {
      extent const rows = shape.queries - t0 < query_block ? shape.queries - t0 : query_block;
      extent const first_row = query_row + t0;
      by.make_left(query, {q.data + first_row * q.stride + h * d, q.stride}, rows,
                   with.rotation != nullptr ? with.rotation + shape.place(t0) * d : nullptr,
                   rotated);
      V* const result = out.data + first_row * out.stride + h * d;
      fetch_rows(result, out.stride, rows, d);
      attend<typename By::products>(by, shape, with.scale,
                                    query_rows<decltype(query)>{h, t0, rows, query},
                                    typename By::head{keys, values, present}, scores, state);
      T* const logs = to.lse + first_row * shape.heads + h;
      if (present > 0)
        write_results(set, with.conversions, state, rows, d, positions<V>{result, out.stride}, logs,
                      shape.heads);
      else
        for (extent r = 0; r < rows; ++r) {
          std::memset(result + r * out.stride, 0, sizeof(V) * static_cast<std::size_t>(d));
          logs[r * shape.heads] = T(0);
        }
    }
  }
}

/// out = softmax(scale * Q K^T) V, head by head; lse = the log of each softmax's denominator, for
/// the backward pass.
///
/// shape:     q, out: [B * T, H * d]; k, v: [B * S, KV * d]; lse: [B * T, H]
/// law:       the result for a sample and head does not depend on B or on other heads. A NaN score
///            makes its row NaN. A sample without keys gives out = 0 and lse = 0. With products of
///            slices, rotated queries and keys, and e^(score - largest), are rounded to bfloat16 as
///            factors; the sum of e^(score - largest) is of numbers before they are rounded.
/// own:       the heads of keys to compute, of the B * KV
/// workspace: attention_forward_workspace<T, V>(shape) bytes
template <class T, class V = T>
PIPE_ONE_COPY void attention_forward(attention_set<T> const& set, attention_shape const& all,
                                     attention_operands<T, V> const& with,
                                     attention_results<V, T> const& to, void* workspace,
                                     part_range own = everything) {
  if constexpr (!in_place<T, V>)
    if (with.slices())
      return attend_heads<sliced_factors<T, V>>(set, all, with, to, workspace, own);
  attend_heads<number_factors<T, V>>(set, all, with, to, workspace, own);
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
