// SPDX-License-Identifier: BSL-1.0
//
// The common parts of both attention kernels' loops: the table of functions for rows, copies of a
// head in the layout that register tiles read, and which keys a query sees.
#pragma once

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The state of a block of queries: the output before its division, and for each row the largest
/// score and the sum of exponentials.
template <class T>
struct softmax_rows {
  T* out = nullptr;  ///< [query_block][ldo]
  extent ldo = 0;
  T* largest = nullptr;
  T* sum = nullptr;
};

/// A row of scores in a block of keys: the positions of the row's query and of the block's first
/// key, the slope of the head's ALiBi, the number of keys that may be seen, and this number rounded
/// up to a multiple of column_alignment().
struct score_place {
  extent query, key;
  double slope;
  extent visible, columns;
};
/// The rules of a row whose scores are not plain (see score_attributes), for each key of a block.
/// seen: 1 if the query sees the key, else 0; slope: the derivative of the shaped score by the
/// plain score.
template <class T>
struct score_row {
  alignas(widest_vector_bytes) T seen[key_block];
  alignas(widest_vector_bytes) T slope[key_block];
};

/// The functions of per_isa/attention.inl that the loops of attention call; a function that a model
/// does not need is null.
template <class T>
struct attention_set {
  tile_set<T> tiles{};
  void (*transpose)(T const* in, extent rows, extent columns, extent in_stride, T* out,
                    extent out_stride) = nullptr;
  /// Rotation of queries or keys by the angles of their positions; rotate_back: of gradients, in
  /// the other direction. Null in a model without rotation.
  void (*rotate)(T const* from, extent stride, extent rows, extent d, T const* rotation,
                 extent padded, T* to, extent to_stride) = nullptr;
  void (*rotate_back)(T const* from, extent stride, extent rows, extent d, T const* rotation,
                      extent padded, T* to, extent to_stride) = nullptr;
  /// Called before and after the blocks of keys of a block of queries. Null: scores are plain, and
  /// every row sees a key of the first block.
  void (*begin)(softmax_rows<T> const& state, extent rows) = nullptr;
  void (*end)(softmax_rows<T> const& state, extent rows) = nullptr;
  void (*softmax_row)(attention_shape const& shape, score_place const& at, T* score, T scale,
                      bool first, softmax_rows<T> const& state, extent row) = nullptr;
  void (*finish)(softmax_rows<T> const& state, extent rows, extent d, T* out, extent stride, T* lse,
                 extent lse_stride) = nullptr;
  void (*softmax_slopes)(attention_shape const& shape, score_place const& at, T* score, T* slope,
                         T scale, T lse, T mean) = nullptr;
  T (*dot)(T const* a, T const* b, extent d) = nullptr;

  /// Scores are computed in multiples of this number of columns: whole vectors, and at least as
  /// many as a tile has rows, so that the transposed reads of the backward pass find every element
  /// of a tile written.
  constexpr extent column_alignment() const {
    return tiles.lanes > tiles.rows ? tiles.lanes : tiles.rows;
  }
};

/// A workspace that is handed out in consecutive parts.
template <class T>
struct carver {
  T* at;
  T* take(extent elements) {
    T* const part = at;
    at += elements;
    return part;
  }
};

/// The keys of a head, transposed in blocks, as the second factor of scores = q k^T.
///
/// shape: from (keys, d), row stride `stride` -> to (blocks, d, key_block), zero beyond the last
///        key up to a multiple of column_alignment()
template <class T>
PIPE_ONE_COPY void transpose_blocks(attention_set<T> const& set, T const* from, extent stride,
                                    extent keys, extent d, T* to) {
  for (extent s = 0; s < keys; s += key_block, to += d * key_block) {
    extent const count = keys - s < key_block ? keys - s : key_block;
    set.transpose(from + s * stride, count, d, stride, to, key_block);
    for (extent c = 0; c < d; ++c)
      for (extent r = count; r < round_up(count, set.column_alignment()); ++r)
        to[c * key_block + r] = T(0);
  }
}

/// Rows of one head as numbers, rotated by the angles of their positions unless `rotation` is null.
///
/// shape: from (rows, d) -> to (rows, padded), zero from d on
template <class T, class V>
void read_rows(attention_set<T> const& set, [[maybe_unused]] value_rows<T, V> const& conversions,
               positions<V const> from, extent rows, extent d, T const* rotation, extent padded,
               positions<T> to) {
  if constexpr (in_place<T, V>) {
    if (rotation != nullptr)
      set.rotate(from.data, from.stride, rows, d, rotation, padded, to.data, to.stride);
    else
      set.tiles.copy_rows(from.data, from.stride, rows, d, padded, to.data, to.stride);
  } else {
    conversions.widen(from.data, from.stride, rows, d, padded, to.data, to.stride);
    if (rotation != nullptr)
      set.rotate(to.data, to.stride, rows, d, rotation, padded, to.data, to.stride);
  }
}

/// The slope of a head's ALiBi, or 0.
PIPE_ONE_COPY inline double slope_of(attention_shape const& shape, extent head) {
  return shape.scores.has_alibi ? detail::alibi_slope(int(head), int(shape.heads)) : 0;
}

/// The number of keys from s on that a query may see; keys from `present` on are padding.
inline extent visible_keys(attention_shape const& shape, extent present, extent query, extent s) {
  extent all = shape.end_key(query);
  if (all > present) all = present;
  return all < s ? 0 : all - s;
}
/// Whether the mask lets one of `rows` queries from t on see one of `count` keys from s on. Blocks
/// that it hides are skipped.
///
/// needs: a mask
PIPE_ONE_COPY inline bool mask_shows(attention_shape const& shape, extent t, extent rows, extent s,
                                     extent count) {
  bool seen[key_block];
  for (extent r = 0; r < rows; ++r)
    if (shape.mask(int(shape.place(t + r)), int(s), int(count), seen)) return true;
  return false;
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
