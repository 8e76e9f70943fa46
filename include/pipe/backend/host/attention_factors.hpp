// SPDX-License-Identifier: BSL-1.0
//
// Factors of attention's products, and what multiplies them. By register tiles, factors are
// numbers; by AMX or its emulation they are tiles of bfloat16 numbers, to which probabilities and
// gradients of scores are rounded. The loops of attention_forward.hpp and attention_backward.hpp
// are the same for both.
#pragma once

#include <cstdint>
#include <cstring>

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/attention_loops.hpp>
#include <pipe/backend/host/sliced_loops.hpp>
#include <pipe/backend/product_shape.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

using detail::product_shape;

/// Products of blocks by register tiles.
template <class T>
struct number_products {
  attention_set<T> const& set;

  /// A sum may begin with any of the terms that are a multiple of this number apart.
  static constexpr extent depth = 1;
  /// Results are written in multiples of this number of rows.
  static constexpr extent row_alignment = 1;

  /// Rows of queries that are multiplied together, if `left` remain of the block.
  int next_queries(extent left) const { return set.tiles.next_rows(left); }
  /// Keys whose gradients are computed together, if `left` remain of the block; a query sees some
  /// of the first `seen`.
  int next_keys(extent left, extent) const { return set.tiles.next_rows(left); }
  /// Scores are computed in multiples of this number of columns.
  extent column_alignment() const { return set.column_alignment(); }

  /// to = A B or, if `continuing`, to += A B: each element's chain of multiply-adds starts from
  /// `to`.
  ///
  /// shape: A (rows, k), B (k, columns) -> to (rows, columns), row stride ldto
  /// needs: columns: whole vectors
  PIPE_ONE_COPY void multiply(product_shape const& shape, strided<T const> a, positions<T const> b,
                              T* to, extent ldto, bool continuing) const {
    tile_set<T> const& tiles = set.tiles;
    int wide = 0, high = 0;
    for (extent j = 0; j < shape.columns; j += wide * tiles.lanes) {
      wide = tiles.next_vectors(tiles.vectors_in(shape.columns - j));
      for (extent i = 0; i < shape.rows; i += high) {
        high = tiles.next_rows(shape.rows - i);
        T* const corner = to + i * ldto + j;
        tiles.tile(high, wide, {shape.inner, a.from(i, 0), b.data + j, b.stride},
                   {continuing ? corner : nullptr, ldto, corner, ldto, false});
      }
    }
  }
};

/// Keys and values of one head as right factors: columns (blocks, d, key_block) as transpose_blocks
/// makes them, rows (S, d rounded up), and the number of keys that are not padding. Scores are
/// products with columns of keys, results products with rows of values. With pages, those of block
/// k are `columns_at` and `rows_at` numbers from pages[k] on.
template <class T>
struct head_numbers {
  T const* columns;
  T const* rows;
  extent present;
  T* const* pages = nullptr;
  extent columns_at = 0, rows_at = 0;

  /// The block that begins with key s0.
  positions<T const> columns_from(extent s0, extent d) const {
    return {pages != nullptr ? pages[s0 / key_block] + columns_at : columns + s0 * d, key_block};
  }
  positions<T const> rows_from(extent s0, extent padded) const {
    return {pages != nullptr ? pages[s0 / key_block] + rows_at : rows + s0 * padded, padded};
  }
};

/// A block of queries, or of the gradients of their results, as factors: its rows from row i on as
/// a left factor, its terms from row i on as a right one.
template <class T>
struct number_block {
  T const* numbers = nullptr;
  extent stride = 0;
  strided<T const> left_from(extent i) const { return {numbers + i * stride, stride, 1}; }
  positions<T const> right_from(extent i) const { return {numbers + i * stride, stride}; }
};

/// The factors of attention for register tiles. Numbers in memory are read in place where they may
/// be.
template <class T, class V>
struct number_factors : number_products<T> {
  using number_products<T>::set;
  using products = number_products<T>;
  using head = head_numbers<T>;
  attention_operands<T, V> const& with;
  extent d, padded;

  number_factors(attention_set<T> const& functions, attention_operands<T, V> const& operands,
                 extent head_size)
      : number_products<T>{functions}, with(operands), d(head_size),
        padded(round_up(head_size, functions.tiles.lanes)) {}

  static attention_parts<T> parts(attention_shape const& shape) {
    return attention_parts<T>(shape);
  }
  static T* take(carver<T>& space, extent elements) { return space.take(elements); }
  void take_rooms(carver<T>&, attention_parts<T> const&) {}

  /// Right factors of a head: rows of keys or values, rotated unless `rotation` is null, their
  /// columns, or both. Columns alone may need `room`, for rows.
  ///
  /// shape: from (n, d) -> rows, columns: see head_numbers; null: not made
  void make(positions<V const> from, extent n, T const* rotation, T* rows, T* columns,
            T* room) const {
    if constexpr (in_place<T, V>)
      if (rows == nullptr && rotation == nullptr)
        return transpose_blocks<T>(set, from.data, from.stride, n, d, columns);
    T* const numbers = rows != nullptr ? rows : room;
    read_rows<T, V>(set, with.conversions, from, n, d, rotation, rows != nullptr ? padded : d,
                    {numbers, padded});
    if (columns != nullptr) transpose_blocks<T>(set, numbers, padded, n, d, columns);
  }

  using block = number_block<T>;
  block take_block(carver<T>&, attention_parts<T> const&) const { return {}; }
  /// The left factor of rows in memory, rotated unless `rotation` is null; room: for numbers.
  void make_left(block& to, positions<V const> from, extent rows, T const* rotation,
                 T* room) const {
    to = {room, padded};
    if constexpr (in_place<T, V>)
      if (rotation == nullptr) {
        to = {from.data, from.stride};
        return;
      }
    read_rows<T, V>(set, with.conversions, from, rows, d, rotation, d, {room, padded});
  }
  /// Both factors of rows of numbers, row stride `padded`.
  void make_both(block& to, T const* numbers, extent) const { to = {numbers, padded}; }
};

/// A factor in tiles: see sliced_block.
struct tiled_factor {
  std::uint16_t const* tiles = nullptr;
  extent pitch = 0;
};
/// See number_block; always whole, since query_block rows are multiplied together. The right factor
/// has one step.
struct tiled_block {
  std::uint16_t* left = nullptr;
  std::uint16_t* right = nullptr;
  extent left_pitch = 0;
  tiled_factor left_from(extent) const { return {left, left_pitch}; }
  tiled_factor right_from(extent) const { return {right, tile_elements}; }
};
/// See head_numbers. columns: for each 16 keys tiles along d; rows: for each block of keys, for
/// each 16 elements tiles along the block's keys.
struct head_tiles {
  std::uint16_t const* columns;
  std::uint16_t const* rows;
  extent present;

  tiled_factor columns_from(extent s0, extent d) const {
    extent const deep = whole_tiles(d, tile_depth);
    return {columns + s0 * deep, tile_side * deep};
  }
  tiled_factor rows_from(extent s0, extent padded) const {
    extent const count = present - s0 < key_block ? present - s0 : key_block;
    return {rows + s0 * padded, tile_side * whole_tiles(count, tile_depth)};
  }
};

/// The factors of attention as tiles of bfloat16 numbers, and their products by AMX or its
/// emulation. The bits of an element are those of contract_sliced for factors that are rounded to
/// bfloat16. Rows and columns that tiles have beyond a factor are zeros.
template <class T, class V>
struct sliced_factors {
  using products = sliced_factors;
  using head = head_tiles;
  attention_set<T> const& set;
  attention_operands<T, V> const& with;
  sliced_kernels<T, V> const& kernels;
  extent d, padded, deep;
  tile_multiplier by;
  std::uint16_t* made = nullptr;
  T* rotated = nullptr;

  sliced_factors(attention_set<T> const& functions, attention_operands<T, V> const& operands,
                 extent head_size)
      : set(functions), with(operands), kernels(*operands.sliced), d(head_size),
        padded(whole_tiles(head_size, tile_side)), deep(whole_tiles(head_size, tile_depth)),
        by(kernels, operands.unit) {}

  static attention_parts<T> parts(attention_shape const& shape) {
    return attention_parts<T>(shape, true);
  }
  static std::uint16_t* take(carver<T>& space, extent elements) {
    return reinterpret_cast<std::uint16_t*>(space.take(elements));
  }
  void take_rooms(carver<T>& space, attention_parts<T> const& part) {
    made = take(space, part.made);
    rotated = space.take(part.rotated);
  }

  static constexpr extent depth = tile_depth, row_alignment = tile_side;
  int next_queries(extent left) const { return int(left < block_side ? left : block_side); }
  int next_keys(extent, extent seen) const { return int(seen < block_side ? seen : block_side); }
  extent column_alignment() const { return tile_side; }

  /// to (+)= A B; `to` is written in whole tiles.
  ///
  /// needs: A and B have the same pitch
  void multiply(product_shape const& shape, tiled_factor a, tiled_factor b, T* to, extent ldto,
                bool continuing) const {
    sliced_block product;
    product.steps = whole_tiles(shape.inner, tile_depth) / tile_depth;
    product.high = shape.rows > tile_side ? 2 : 1;
    product.a = a.tiles;
    product.pitch = b.pitch;
    product.sums = to;
    product.stride = ldto;
    product.begins = !continuing;
    multiply_blocks(by.multiply, product, b.tiles, shape.columns);
  }
  /// The same for a left factor of numbers, which are rounded to bfloat16.
  void multiply(product_shape const& shape, strided<T const> a, tiled_factor b, T* to, extent ldto,
                bool continuing) const {
    for (extent i = 0; i < shape.rows; i += tile_side)
      kernels.left_numbers(a.from(i, 0), shape.rows - i < tile_side ? shape.rows - i : tile_side,
                           shape.inner, made + i / tile_side * b.pitch);
    multiply(shape, tiled_factor{made, b.pitch}, b, to, ldto, continuing);
  }

  /// See number_factors. Rotated keys are rounded to bfloat16.
  void make(positions<V const> from, extent n, T const* rotation, std::uint16_t* rows,
            std::uint16_t* columns, void const*) const {
    for (extent s = 0; s < n; s += key_block, from.data += key_block * from.stride) {
      extent const count = n - s < key_block ? n - s : key_block;
      if (rotation != nullptr)
        read_rows<T, V>(set, with.conversions, from, count, d, rotation + s * d, d,
                        {rotated, padded});
      if (rows != nullptr) {
        if (rotation != nullptr)
          kernels.right_numbers(rotated, padded, count, d, rows + s * padded);
        else
          kernels.right_values(from.data, from.stride, count, d, rows + s * padded);
      }
      if (columns == nullptr) continue;
      std::uint16_t* const to = columns + s * deep;
      if (rotation != nullptr)
        kernels.left_numbers({rotated, padded, 1}, count, d, to);
      else
        kernels.left_values({from.data, from.stride, 1}, count, d, to);
      for (extent i = 0; i < whole_tiles(count, tile_side) * deep; i += tile_elements)
        transpose_pairs(to + i);
    }
  }

  using block = tiled_block;
  block take_block(carver<T>& space, attention_parts<T> const& part) const {
    std::uint16_t* const tiles = take(space, part.query_tiles);
    return {tiles, tiles + query_block * deep, tile_side * deep};
  }
  /// See number_factors. Rotated queries are rounded to bfloat16.
  void make_left(block& to, positions<V const> from, extent rows, T const* rotation,
                 T* room) const {
    if (rotation == nullptr)
      return kernels.left_values({from.data, from.stride, 1}, rows, d, to.left);
    read_rows<T, V>(set, with.conversions, from, rows, d, rotation, d, {room, padded});
    kernels.left_numbers({room, padded, 1}, rows, d, to.left);
  }
  void make_both(block& to, T const* numbers, extent rows) const {
    kernels.left_numbers({numbers, padded, 1}, rows, d, to.left);
    kernels.right_numbers(numbers, padded, rows, d, to.right);
  }

 private:
  static_assert(query_block == block_side && query_block == tile_depth);

  /// Transposes a tile as 16 x 16 pairs: a tile of A becomes the tile of its transpose as B.
  void transpose_pairs(std::uint16_t* tile) const {
    alignas(widest_vector_bytes) T pairs[tile_side * tile_side];
    static_assert(sizeof pairs == tile_elements * sizeof *tile);
    std::memcpy(pairs, tile, sizeof pairs);
    set.transpose(pairs, tile_side, tile_side, tile_side, reinterpret_cast<T*>(tile), tile_side);
  }
};

}  // namespace pp::host
PIPE_OPTIMIZED_END
