// SPDX-License-Identifier: BSL-1.0
//
// Values in memory whose type is narrower than the type T that kernels compute with. Kernels widen
// what they read of them to T, and round their results to the type V of values, once for each op.
// Where V is T, values are read and written in place.
#pragma once

#include <type_traits>

#include <pipe/backend/host/isa.hpp>
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

/// What products of values call: the place for products of 16-bit numbers by instructions that a
/// processor may have for them. Now both factors are widened, block by block, for tiles of T.
template <class T, class V>
struct value_products {
  tile_set<T> tiles;
  value_rows<T, V> rows{};  ///< empty where values are numbers
};

}  // namespace pp::host
