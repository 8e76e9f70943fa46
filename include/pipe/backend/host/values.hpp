// SPDX-License-Identifier: BSL-1.0
//
// Values in memory whose type is narrower than the type T that kernels compute with. Kernels widen
// what they read of them to T, and round their results to the type V of values, once for each op.
// Where V is T, values are read and written in place.
#pragma once

#include <type_traits>

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/sliced_products.hpp>
#include <pipe/backend/host/tiles.hpp>

namespace pp::host {

/// Whether kernels read and write values of type V in place, as numbers of type T.
template <class T, class V>
inline constexpr bool in_place = std::is_same_v<std::remove_const_t<T>, std::remove_const_t<V>>;

/// The number that memory would hold: x rounded to V.
template <class V, class T>
constexpr T rounded_to(T x) {
  if constexpr (in_place<T, V>)
    return x;
  else
    return T(V(x));
}

/// The functions of one instruction set that convert rows of values.
template <class T, class V>
struct value_rows {
  /// to[r, c] = from[r, c] for c < columns, and 0 for c in [columns, padded).
  void (*widen)(V const* from, extent stride, extent rows, extent columns, extent padded, T* to,
                extent to_stride) = nullptr;
  /// to[r, c] = from[r, c], rounded, for c < columns.
  void (*narrow)(T const* from, extent stride, extent rows, extent columns, V* to,
                 extent to_stride) = nullptr;
};

template <class T>
struct contraction_ends;
template <class T, class V>
struct value_products;

/// A product C[m, n] = A[m, k] * B[k, n] of values. B is row-major with row stride ldb, or
/// in_panels.
template <class T, class V>
struct value_factors {
  detail::product_shape shape;
  strided<V const> a;
  V const* b;
  extent ldb;
  strided<T const> made{nullptr, 0, 0};  ///< A as numbers, made by a prologue or block by block
  extent made_depth = 0;                 ///< see blocking_of_slices
};

/// The functions of one instruction set for products of slices.
template <class T, class V>
struct sliced_kernels {
  int slices = 0;
  /// Tiles of A, of B; rows and columns beyond the matrix are zeros.
  ///
  /// shape: from (rows, depth), or (depth, columns) with dense rows -> tiles, as sliced_block says
  void (*left_values)(strided<V const> from, extent rows, extent depth,
                      std::uint16_t* to) = nullptr;
  void (*left_numbers)(strided<T const> from, extent rows, extent depth,
                       std::uint16_t* to) = nullptr;
  void (*right_values)(V const* from, extent stride, extent depth, extent columns,
                       std::uint16_t* to) = nullptr;
  void (*right_numbers)(T const* from, extent stride, extent depth, extent columns,
                        std::uint16_t* to) = nullptr;
  /// The emulation of amx::multiply_block. law: its bits, but for those of a NaN
  void (*emulate_amx)(sliced_block const&) = nullptr;
  /// Products of one slice by AVX-512-BF16, null in sets without its vectors, and their emulation,
  /// which has its bits, but for those of a NaN.
  void (*multiply_pairs)(sliced_block const&) = nullptr;
  void (*emulate_pairs)(sliced_block const&) = nullptr;
  /// contract_sliced. A pointer, so that programs without products of slices do not compile it.
  void (*contract)(value_products<T, V> const& set, product_unit unit,
                   value_factors<T, V> const& of, contraction_ends<T> const& with,
                   void* workspace) = nullptr;
};

/// What products of values call. Factors are widened, block by block, for tiles of T, or are
/// multiplied as slices.
template <class T, class V>
struct value_products {
  tile_set<T> tiles;
  value_rows<T, V> rows{};                       ///< empty where values are numbers
  sliced_kernels<T, V> const* sliced = nullptr;  ///< null where products are not of 16-bit numbers

  /// Whether products by this unit are of slices.
  constexpr bool slices(product_unit unit) const {
    return unit != product_unit::vectors && sliced != nullptr;
  }
};

}  // namespace pp::host
