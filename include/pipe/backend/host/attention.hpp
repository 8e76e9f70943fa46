// SPDX-License-Identifier: BSL-1.0
//
// The part of the attention kernels' interface that does not depend on the instruction set: the
// shape, the operands and the workspace. The kernels are attention_forward and attention_backward,
// in the headers of those names.
#pragma once

#include <cstddef>

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/sliced_products.hpp>
#include <pipe/backend/host/values.hpp>
#include <pipe/backend/segments.hpp>
#include <pipe/graph/attention_mask.hpp>
#include <pipe/passes/group.hpp>

namespace pp::host {

/// B samples of T query and S key positions, H query heads of d elements that share KV heads of
/// keys and values. With segments, samples have several lengths, up to `queries` and `keys`.
///
/// law: heads is a multiple of kv_heads: query head h reads key head h / (heads / kv_heads). If
///      causal, keys >= queries: query t has position t + (keys - queries) among the keys, and sees
///      the keys up to this position.
struct attention_shape {
  extent samples;
  extent queries;
  extent keys;
  extent heads;
  extent kv_heads;
  extent head_size;
  bool causal;
  detail::score_attributes scores{};
  detail::mask_function mask = nullptr;  ///< a user-defined mask; null: none
  /// Of queries and of keys; null: samples of one length.
  detail::segment_list const *segments = nullptr, *key_segments = nullptr;
  extent shift = 0;  ///< of the places of queries, in a sample of another length

  /// The shape of sample b, and the first of its rows of queries and of keys. A sample that has no
  /// segment has no rows.
  constexpr attention_shape of_sample(extent b) const {
    attention_shape one = *this;
    if (segments != nullptr) one.queries = segments->length_of(b);
    if (key_segments != nullptr) one.keys = key_segments->length_of(b);
    one.shift = place(0) - one.place(0);
    return one;
  }
  constexpr extent first_query_row(extent b) const {
    return segments != nullptr ? segments->first_of(b) : b * queries;
  }
  constexpr extent first_key_row(extent b) const {
    return key_segments != nullptr ? key_segments->first_of(b) : b * keys;
  }
  /// The position of a query among the keys. It does not depend on the lengths of a sample.
  constexpr extent place(extent query) const { return query + keys - queries + shift; }
  /// A query may see the keys in [first_key, end_key); a mask hides some of these.
  constexpr extent first_key(extent query) const {
    extent const first = place(query) + 1 - scores.window;
    return scores.window == 0 || first < 0 ? 0 : first;
  }
  constexpr extent end_key(extent query) const {
    if (!causal) return keys;
    extent const end = place(query) + 1;
    return end > scores.prefix ? end : scores.prefix;
  }
};

/// The shape of group g, an attention or its gradient, on `samples` samples.
constexpr attention_shape attention_shape_of(detail::group const& g, int samples,
                                             detail::mask_function mask = nullptr) {
  detail::attention_attributes const of = g.attributes.attention();
  return {samples,   g.rows,      of.is_fused() ? g.rows : of.keys,
          of.heads,  of.kv_heads, g.columns / of.heads,
          of.causal, of.scores,   mask};
}

/// A matrix of positions: position t of sample b is row b * T + t, at data + row * stride, and head
/// h is elements [h * d, (h + 1) * d) of the row. Queries, keys and values may be three slices of
/// one matrix.
template <class T>
struct positions {
  T* data;
  extent stride;
};

/// Queries, keys and values, or their gradients.
template <class U>
struct attention_slices {
  positions<U> q, k, v;
};

/// The operands of both kernels, values of type V; rotation and ids may be absent.
template <class T, class V = T>
struct attention_operands : attention_slices<V const> {
  T scale;                      ///< > 0: the factor of a product of a query and a key
  T const* rotation = nullptr;  ///< [S, d]: cosines and sines of the positions' angles, by which
                                ///< queries and keys are rotated; see rotate_rows
  int const* ids =
      nullptr;  ///< [B, S]: trailing ids of -1 in a sample are padding, which no query sees
  value_rows<T, V> conversions{};                ///< where V is not T
  sliced_kernels<T, V> const* sliced = nullptr;  ///< of one slice, where V is bfloat16
  product_unit unit = product_unit::vectors;     ///< which multiplies; see contract_values

  /// Whether products are of slices: tiles of bfloat16 numbers.
  constexpr bool slices() const { return unit != product_unit::vectors && sliced != nullptr; }
};

/// The results of the forward pass, which the backward pass reads. lse: the logs of the softmaxes'
/// denominators, [B * T, H], dense.
template <class U, class Log = U>
struct attention_results {
  positions<U> out;
  Log* lse;
};

/// The number of a sample's keys that are not padding; ids: of its positions, or null.
inline extent present_keys(int const* ids, extent keys) {
  extent n = keys;
  if (ids != nullptr)
    while (n > 0 && ids[n - 1] < 0) --n;
  return n;
}

/// The scores of query_block x key_block positions are in memory at a time, in L1 cache.
inline constexpr extent query_block = 32;
inline constexpr extent key_block = 128;

/// x rounded up to a multiple of `alignment`, a power of two.
constexpr extent round_up(extent x, extent alignment) { return (x + alignment - 1) & -alignment; }

/// Elements of each workspace part, rounded so that every part starts on a cache line on any
/// instruction set. slices: products are of tiles of bfloat16 numbers, so parts hold whole tiles.
template <class T>
struct attention_parts {
  static constexpr extent alignment = widest_vector_bytes / sizeof(T);

  extent columns;     ///< keys (or values) of one head, transposed: [block][d][key_block], or tiles
  extent rows;        ///< keys (or values) of one head: [S][d rounded up], or tiles
  extent sums;        ///< a gradient by keys (or values) of one head: [S][d rounded up]
  extent query_rows;  ///< numbers for a block of queries: [query_block][d rounded up]
  extent query_tiles = 0;  ///< tiles of such a block, as a left factor and as a right one
  extent made = 0;         ///< tiles of scores, as a left factor
  extent rotated = 0;      ///< a block of keys before they become tiles: [key_block][d rounded up]
  extent scores = query_block * key_block;
  extent per_query = query_block;

  constexpr explicit attention_parts(attention_shape const& s, bool slices = false)
      : columns(round_up(s.keys, key_block) * s.head_size),
        rows(s.keys * round_up(s.head_size, alignment)), sums(rows),
        query_rows(query_block * round_up(s.head_size, alignment)) {
    if (!slices) return;
    // A number of T has room for two of a tile.
    extent const keys = whole_tiles(s.keys, block_side), wide = whole_tiles(s.head_size, tile_side),
                 deep = whole_tiles(s.head_size, tile_depth);
    columns = keys * deep / 2;
    rows = keys * wide / 2;
    sums = keys * wide;
    query_tiles = query_block * (deep + wide) / 2;
    made = scores / 2;
    rotated = key_block * wide;
  }
  constexpr extent of_forward() const {
    return columns + rows + 2 * query_rows + query_tiles + made + rotated + scores + 2 * per_query;
  }
  constexpr extent of_backward() const {
    return 2 * columns + rows + 2 * sums + 3 * query_rows + 2 * query_tiles + made + rotated +
           2 * scores + per_query;
  }
};

/// Bytes of workspace that attention_forward needs on any instruction set, with any unit; to be
/// aligned to widest_vector_bytes.
template <class T, class V = T>
constexpr std::size_t attention_forward_workspace(attention_shape const& shape) {
  extent const numbers = attention_parts<T>(shape).of_forward(),
               tiles = in_place<T, V> ? 0 : attention_parts<T>(shape, true).of_forward();
  return static_cast<std::size_t>(numbers > tiles ? numbers : tiles) * sizeof(T);
}

/// Bytes of workspace that attention_backward needs, likewise.
template <class T, class V = T>
constexpr std::size_t attention_backward_workspace(attention_shape const& shape) {
  extent const numbers = attention_parts<T>(shape).of_backward(),
               tiles = in_place<T, V> ? 0 : attention_parts<T>(shape, true).of_backward();
  return static_cast<std::size_t>(numbers > tiles ? numbers : tiles) * sizeof(T);
}

}  // namespace pp::host
