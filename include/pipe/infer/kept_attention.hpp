// SPDX-License-Identifier: BSL-1.0
//
// Attention of a decoder's new positions to themselves and to all earlier ones. Keys, rotated, and
// values of all positions are kept in the layout that the kernels of attention read, so a position
// is appended once. They may be kept in bfloat16; then a block is widened when it is read.
#pragma once

#include <type_traits>

#include <pipe/backend/host/attention_forward.hpp>
#include <pipe/backend/host/values.hpp>
#include <pipe/base/half.hpp>
#include <pipe/base/libm.hpp>

namespace pp::detail {

/// Keys and values of one head in bfloat16: see host::head_numbers. A block is widened once for all
/// the rows of queries that read it.
template <class T>
struct narrow_head {
  using extent = host::extent;
  host::value_rows<T, bf16> const& conversions;
  extent present;
  T* const* pages;
  extent keys, values, head_of_keys, head_of_values;  ///< offsets of the pages' parts, and in them
  T* columns;                                         ///< room for a block of each
  T* rows;
  mutable extent columns_of = -1, rows_of = -1;  ///< the first keys of the blocks there

  extent count(extent s0) const {
    return present - s0 < host::key_block ? present - s0 : host::key_block;
  }
  host::positions<T const> columns_from(extent s0, extent d) const {
    if (columns_of != s0)
      conversions.widen(narrow(s0, keys) + head_of_keys, host::key_block, d, count(s0),
                        host::round_up(count(s0), host::tile_side), columns, host::key_block);
    columns_of = s0;
    return {columns, host::key_block};
  }
  host::positions<T const> rows_from(extent s0, extent padded) const {
    if (rows_of != s0)
      conversions.widen(narrow(s0, values) + head_of_values, padded, count(s0), padded, padded,
                        rows, padded);
    rows_of = s0;
    return {rows, padded};
  }

 private:
  bf16 const* narrow(extent s0, extent part) const {
    return reinterpret_cast<bf16 const*>(pages[s0 / host::key_block] + part);
  }
};

/// One attention of a model, in a run of n new positions.
///
/// shape: x (n, (H + 2 KV) * d): queries, keys, values -> y (n, H * d); in a page keys (KV, d,
///        key_block), transposed, and values (KV, key_block, padded d)
/// law:   the sums of a row are those of attention_forward on the whole context: the same bits; in
///        bfloat16, those for keys and values that have been rounded
template <class T>
struct kept_attention {
  using extent = host::extent;

  host::attention_set<T> const& set;
  host::attention_shape shape;  ///< queries: the new positions; keys: these and all earlier ones
  extent context;
  T const* rotation;                                  ///< the angles of all positions; null: none
  T* const* pages;                                    ///< of the text, for key_block positions each
  extent keys, values;                                ///< their offsets in a page, head after head
  host::value_rows<T, bf16> const* narrow = nullptr;  ///< null: keys and values are numbers of T

  /// The position of the first new row.
  extent position() const { return shape.keys - shape.queries; }
  /// The distance of rows of values and of rotated rows: the head size in whole vectors.
  extent padded() const { return host::round_up(shape.head_size, set.tiles.lanes); }
  /// The numbers of one head in a page.
  extent keys_of_head() const { return host::key_block * shape.head_size; }
  extent values_of_head() const {
    return (context < host::key_block ? context : host::key_block) * padded();
  }
  /// The numbers of T in a page that all keys take, and all values.
  extent all_keys() const { return stored(shape.kv_heads * keys_of_head()); }
  extent all_values() const { return stored(shape.kv_heads * values_of_head()); }
  /// The numbers of workspace of each function.
  extent workspace() const {
    extent const blocks = narrow != nullptr ? host::key_block * (shape.head_size + padded()) : 0;
    return host::query_block * (2 * padded() + host::key_block + 3) + blocks;
  }

  /// Appends the new keys and values of head `group` of KV.
  [[gnu::cold]] void append(T const* x, extent group, T* workspace) const {
    extent const n = shape.queries, d = shape.head_size, stride = row_of_x(), wide = padded();
    T const* const value = x + (shape.heads + shape.kv_heads + group) * d;
    for (extent r = 0, count = 0; r < n; r += count) {
      // Up to a multiple of query_block, so within one block of keys.
      extent const at = position() + r, left = n - r;
      count = host::query_block - at % host::query_block;
      if (count > left) count = left;
      T* const page = pages[at / host::key_block];
      extent const in_page = at % host::key_block;
      if (narrow != nullptr) {
        append_narrow({value + r * stride, stride}, x + r * stride + (shape.heads + group) * d,
                      count, at, group, workspace);
        continue;
      }
      set.tiles.copy_rows(value + r * stride, stride, count, d, wide,
                          page + values + group * values_of_head() + in_page * wide, wide);
      host::positions<T const> const key =
          rotated({x + r * stride + (shape.heads + group) * d, stride}, count, at, workspace);
      set.transpose(key.data, count, d, key.stride, page + keys + group * keys_of_head() + in_page,
                    host::key_block);
    }
  }

  /// The blocks of queries of a head from row `first` on.
  extent blocks_from(extent first) const {
    return (shape.queries - first + host::query_block - 1) / host::query_block;
  }
  /// The results of one head for up to query_block rows from row t on; y: row t.
  ///
  /// cost: 4 * rows * keys * d FLOPs
  [[gnu::cold]] void attend(T const* x, extent head, extent t, T* y, T* workspace) const {
    extent const d = shape.head_size, wide = padded(), left = shape.queries - t,
                 rows = left < host::query_block ? left : host::query_block,
                 group = head / (shape.heads / shape.kv_heads);
    host::carver<T> space{workspace};
    T* const angled = space.take(host::query_block * wide);
    T* const sums = space.take(host::query_block * wide);
    T* const scores = space.take(host::query_block * host::key_block);
    T* const largest = space.take(host::query_block);
    T* const denominators = space.take(host::query_block);
    T* const logs = space.take(host::query_block);
    host::softmax_rows<T> const state{sums, wide, largest, denominators};
    host::positions<T const> const query =
        rotated({x + t * row_of_x() + head * d, row_of_x()}, rows, position() + t, angled);
    host::query_rows<host::number_block<T>> const at{head, t, rows, {query.data, query.stride}};
    auto const attend_to = [&](auto const& of) {
      host::attend(host::number_products<T>{set}, shape, T(1) / libm::sqrt(T(d)), at, of, scores,
                   state);
    };
    extent const of_keys = group * keys_of_head(), of_values = group * values_of_head();
    if (narrow == nullptr)
      attend_to(host::head_numbers<T>{nullptr, nullptr, shape.keys, pages, keys + of_keys,
                                      values + of_values});
    else if constexpr (std::is_same_v<T, float>)
      attend_to(narrow_head<T>{*narrow, shape.keys, pages, keys, values, of_keys, of_values,
                               space.take(host::key_block * d),
                               space.take(host::key_block * wide)});
    set.finish(state, rows, d, y + head * d, shape.heads * d, logs, extent(1));
  }

 private:
  /// The numbers of T whose room n kept numbers take.
  extent stored(extent n) const {
    return narrow != nullptr ? n * extent(sizeof(bf16)) / extent(sizeof(T)) : n;
  }
  /// append() of some rows to one page, rounded.
  [[gnu::cold]] void append_narrow(host::positions<T const> value, T const* key, extent count,
                                   extent at, extent group, T* workspace) const {
    extent const d = shape.head_size, wide = padded(), in_page = at % host::key_block;
    T* const page = pages[at / host::key_block];
    bf16* const to_keys = reinterpret_cast<bf16*>(page + keys) + group * keys_of_head() + in_page;
    bf16* const to_values =
        reinterpret_cast<bf16*>(page + values) + group * values_of_head() + in_page * wide;
    T* const transposed = workspace + host::query_block * wide;
    host::positions<T const> const angled = rotated({key, row_of_x()}, count, at, workspace);
    set.transpose(angled.data, count, d, angled.stride, transposed, host::query_block);
    narrow->narrow(transposed, host::query_block, d, count, to_keys, host::key_block);
    // With zeros beyond d.
    set.tiles.copy_rows(value.data, value.stride, count, d, wide, workspace, wide);
    narrow->narrow(workspace, wide, count, wide, to_values, wide);
  }
  extent row_of_x() const { return (shape.heads + 2 * shape.kv_heads) * shape.head_size; }
  /// Rows of a head at positions from `at` on, rotated into `to` if the attention rotates.
  host::positions<T const> rotated(host::positions<T const> from, extent rows, extent at,
                                   T* to) const {
    if (rotation == nullptr) return from;
    set.rotate(from.data, from.stride, rows, shape.head_size, rotation + at * shape.head_size,
               padded(), to, padded());
    return {to, padded()};
  }
};

}  // namespace pp::detail
