// SPDX-License-Identifier: BSL-1.0
//
// The common parts of the loops of both attention kernels: the table of row kernels, copies of one
// head in the layouts the register tile reads, products of whole blocks, and which keys a query
// sees.
#pragma once

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/contraction.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The state of a block of queries: output not yet divided, and per row the largest score and the
/// sum of exponentials.
template <class T>
struct softmax_rows {
  T* out = nullptr;  ///< [query_block][ldo]
  extent ldo = 0;
  T* largest = nullptr;
  T* sum = nullptr;
};

/// The place of a row of scores in a block of keys: the position of its query, that of the block's
/// first key, and the slope of its head's ALiBi.
struct score_place {
  extent query, key;
  double slope;
};
/// The rules of a row whose scores are not plain (see score_attributes), for each key of a block: 1
/// if the query sees it, else 0; and the derivative of the shaped score by the plain one.
template <class T>
struct score_row {
  alignas(widest_vector_bytes) T seen[key_block];
  alignas(widest_vector_bytes) T slope[key_block];
};

/// What the loops of attention call, from per_isa/attention.inl; null is what a model has no use
/// for.
template <class T>
struct attention_set {
  tile_set<T> tiles{};
  void (*transpose)(T const* in, extent rows, extent columns, extent in_stride, T* out,
                    extent out_stride) = nullptr;
  /// Queries or keys by the angles of their positions, and gradients back; absent without rotation.
  void (*turn)(T const* from, extent stride, extent rows, extent d, T const* rotation,
               extent padded, T* to, extent to_stride) = nullptr;
  void (*turn_back)(T const* from, extent stride, extent rows, extent d, T const* rotation,
                    extent padded, T* to, extent to_stride) = nullptr;
  /// Before and after the blocks of keys of a block of queries. Null: scores are plain, and a row
  /// sees a key of the first block.
  void (*begin)(softmax_rows<T> const& state, extent rows) = nullptr;
  void (*end)(softmax_rows<T> const& state, extent rows) = nullptr;
  /// This and softmax_slopes read the shape and the place only where scores are shaped.
  void (*softmax_row)(attention_shape const& shape, score_place const& at, T* score, extent visible,
                      extent columns, T scale, bool first, softmax_rows<T> const& state,
                      extent row) = nullptr;
  void (*finish)(softmax_rows<T> const& state, extent rows, extent d, T* out, extent stride, T* lse,
                 extent lse_stride) = nullptr;
  void (*softmax_slopes)(attention_shape const& shape, score_place const& at, T* score, T* slope,
                         extent visible, extent columns, T scale, T lse, T mean) = nullptr;
  T (*dot)(T const* a, T const* b, extent d) = nullptr;

  /// Scores are computed in columns of this many: whole vectors, and no less than a tile's rows, so
  /// that the transposed reads of the backward pass find every element of a tile written.
  constexpr extent column_step() const {
    return tiles.lanes > tiles.rows ? tiles.lanes : tiles.rows;
  }
};

/// Takes consecutive parts from a workspace.
template <class T>
struct carver {
  T* at;
  T* take(extent elements) {
    T* const part = at;
    at += elements;
    return part;
  }
};

/// to = A B, or to += A B as one longer chain if `continuing`.
///
/// shape: A (rows, k) by its strides, B (k, columns), row stride ldb -> to (rows, columns), row
///        stride ldto
/// needs: columns: whole vectors
template <class T>
PIPE_ONE_COPY void multiply_block(tile_set<T> const& tiles, extent rows, extent columns, extent k,
                                  strided<T const> a, T const* b, extent ldb, T* to, extent ldto,
                                  bool continuing) {
  int wide = 0, high = 0;
  for (extent j = 0; j < columns; j += wide * tiles.lanes) {
    wide = tiles.next_vectors(tiles.vectors_in(columns - j));
    for (extent i = 0; i < rows; i += high) {
      high = tiles.next_rows(rows - i);
      T* const corner = to + i * ldto + j;
      tiles.tile(high, wide, k, a.data + i * a.row, a.row, a.column, b + j, ldb,
                 {continuing ? corner : nullptr, ldto, corner, ldto, false});
    }
  }
}

/// The keys of a head, transposed in blocks, as the second factor of scores = q k^T.
///
/// shape: from (keys, d), row stride `stride` -> to (blocks, d, key_block), zero beyond the last
///        key up to whole column steps
template <class T>
PIPE_ONE_COPY void transpose_blocks(attention_set<T> const& set, T const* from, extent stride,
                                    extent keys, extent d, T* to) {
  for (extent s = 0; s < keys; s += key_block, to += d * key_block) {
    extent const count = keys - s < key_block ? keys - s : key_block;
    set.transpose(from + s * stride, count, d, stride, to, key_block);
    for (extent c = 0; c < d; ++c)
      for (extent r = count; r < round_up(count, set.column_step()); ++r)
        to[c * key_block + r] = T(0);
  }
}

/// The slope of a head's ALiBi, or 0.
PIPE_ONE_COPY inline double slope_of(attention_shape const& shape, extent head) {
  return shape.scores.has_alibi ? detail::alibi_slope(int(head), int(shape.heads)) : 0;
}

/// How many of the keys from s on a query may see, the first `present` of all being no padding.
inline extent visible_keys(attention_shape const& shape, extent present, extent query, extent s) {
  extent all = shape.end_key(query);
  if (all > present) all = present;
  return all < s ? 0 : all - s;
}
/// Whether one of `rows` queries from t on sees one of `count` keys from s on, as far as the mask
/// says: a block that it hides is passed over.
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
