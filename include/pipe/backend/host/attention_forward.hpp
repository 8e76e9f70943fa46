// SPDX-License-Identifier: BSL-1.0
//
// Attention without the score matrix: each block of queries goes through the blocks of keys, each
// row keeps a running maximum and sum, and earlier output is rescaled when the maximum grows.
// Milakov, Gimelshein, 2018; Dao et al., FlashAttention, 2022.
#pragma once

#include <cstddef>
#include <cstring>

#include <pipe/backend/host/attention.hpp>
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
template <class T>
struct query_rows {
  extent head, first, rows;  ///< rows <= query_block
  positions<T const> at;     ///< from query `first` and the head on
};
/// The keys and values of one head: keys (blocks, d, key_block) as transpose_blocks makes them,
/// values (S, d rounded up), and the number of keys that are not padding. With pages, those of
/// block k are `keys_at` and `values_at` numbers from pages[k] on.
template <class T>
struct key_blocks {
  T const* keys;
  T const* values;
  extent present;
  T* const* pages = nullptr;
  extent keys_at = 0, values_at = 0;

  /// The keys and the values of the block that begins with key s0.
  T const* keys_of(extent s0, extent d) const {
    return pages != nullptr ? pages[s0 / key_block] + keys_at : keys + s0 * d;
  }
  T const* values_of(extent s0, extent padded) const {
    return pages != nullptr ? pages[s0 / key_block] + values_at : values + s0 * padded;
  }
};

/// Online softmax over blocks of keys for a block of queries of one head. Afterwards `state` has
/// the sums of e^(score - largest) * value and of e^(score - largest); set.finish divides the first
/// by the second.
///
/// shape: query (rows, d), of (S, d) -> state
/// law:   the sums of a row do not depend on the rows beside it
/// cost:  blocks that no query sees are skipped; within a block, tiles end at the last visible key
template <class T>
PIPE_ONE_COPY void attend(attention_set<T> const& set, attention_shape const& shape, T scale,
                          query_rows<T> const& query, key_blocks<T> const& of, T* scores,
                          softmax_rows<T> const& state) {
  extent const d = shape.head_size, padded = state.ldo, t0 = query.first, rows = query.rows;
  extent const seen = visible_keys(shape, of.present, t0 + rows - 1, 0);
  strided<T const> const q{query.at.data, query.at.stride, 1};
  bool begun = set.begin != nullptr;  // whether `state` has sums
  if (begun) set.begin(state, rows);
  double const slope = slope_of(shape, query.head);
  for (extent s0 = shape.first_key(t0) / key_block * key_block; s0 < seen; s0 += key_block) {
    extent const count = shape.keys - s0 < key_block ? shape.keys - s0 : key_block;
    if (shape.mask != nullptr && !mask_shows(shape, t0, rows, s0, count)) continue;
    int high = 0;
    for (extent i = 0; i < rows; i += high) {
      high = set.tiles.next_rows(rows - i);
      extent depth = visible_keys(shape, of.present, t0 + i + high - 1, s0);
      if (depth > count) depth = count;
      extent const columns = round_up(depth, set.column_alignment());
      T* const score = scores + i * key_block;
      if (depth > 0)
        multiply_block<T>(set.tiles, {high, columns, d}, q.from(i, 0), of.keys_of(s0, d), key_block,
                          score, key_block, false);
      for (extent r = i; depth > 0 && r < i + high; ++r) {
        extent visible = visible_keys(shape, of.present, t0 + r, s0);
        if (visible > count) visible = count;
        set.softmax_row(shape, {shape.place(t0 + r), s0, slope, visible, columns},
                        scores + r * key_block, scale, !begun, state, r);
      }
      if (depth > 0)
        multiply_block<T>(set.tiles, {high, padded, depth}, {score, key_block, 1},
                          of.values_of(s0, padded), padded, state.out + i * padded, padded, begun);
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

/// out = softmax(scale * Q K^T) V, head by head; lse = the log of each softmax's denominator, for
/// the backward pass.
///
/// shape:     q, out: [B * T, H * d]; k, v: [B * S, KV * d]; lse: [B * T, H]
/// law:       the result for a sample and head does not depend on B or on other heads. A NaN score
///            makes its row NaN. A sample without keys gives out = 0 and lse = 0.
/// own:       the heads of keys to compute, of the B * KV
/// workspace: attention_forward_workspace<T>(shape) bytes
template <class T, class V = T>
PIPE_ONE_COPY void attention_forward(attention_set<T> const& set, attention_shape const& all,
                                     attention_operands<T, V> const& with,
                                     attention_results<V, T> const& to, void* workspace,
                                     part_range own = everything) {
  positions<V const> const q = with.q, k = with.k, v = with.v;
  positions<V> const out = to.out;
  extent const d = all.head_size, group = all.heads / all.kv_heads,
               padded = round_up(d, set.tiles.lanes);
  attention_parts<T> const part(all);
  carver<T> space{static_cast<T*>(workspace)};
  T* const keys = space.take(part.transposed);
  T* const values = space.take(part.key_rows);
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
      positions<V const> const key{k.data + key_row * k.stride + at, k.stride},
          value{v.data + key_row * v.stride + at, v.stride};
      bool copies = with.rotation != nullptr || !in_place<T, V>;
      if constexpr (in_place<T, V>)
        if (!copies) transpose_blocks(set, key.data, key.stride, shape.keys, d, keys);
      if (copies) {
        read_rows<T, V>(set, with.conversions, key, shape.keys, d, with.rotation, d,
                        {values, padded});
        transpose_blocks<T>(set, values, padded, shape.keys, d, keys);
      }
      read_rows<T, V>(set, with.conversions, value, shape.keys, d, nullptr, padded,
                      {values, padded});
    }
    for (extent t0 = 0; t0 < shape.queries; t0 += query_block) {
      extent const rows = shape.queries - t0 < query_block ? shape.queries - t0 : query_block;
      extent const first_row = query_row + t0;
      positions<V const> const in_memory{q.data + first_row * q.stride + h * d, q.stride};
      positions<T const> query{rotated, padded};
      bool in_copy = with.rotation != nullptr || !in_place<T, V>;
      if constexpr (in_place<T, V>)
        if (!in_copy) query = in_memory;
      if (in_copy)
        read_rows<T, V>(set, with.conversions, in_memory, rows, d,
                        with.rotation != nullptr
                            ? with.rotation + (t0 + shape.keys - shape.queries) * d
                            : nullptr,
                        d, {rotated, padded});
      attend(set, shape, with.scale, {h, t0, rows, query}, {keys, values, present}, scores, state);
      V* const result = out.data + first_row * out.stride + h * d;
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

}  // namespace pp::host
PIPE_OPTIMIZED_END
