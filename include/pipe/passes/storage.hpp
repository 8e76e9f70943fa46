// SPDX-License-Identifier: BSL-1.0
//
// The storage of results: arrays in a constant, of exact size since unused room in a constant costs
// compile time at every copy; or arrays on the heap. A function that makes a result is given the
// numbers of its items, and the type of a number chooses the storage: `fixed<N>` a constant, int
// the heap.
#pragma once

#include <pipe/base/heap_array.hpp>
#include <pipe/base/list.hpp>

namespace pp::detail {

/// A number that is part of a type.
template <int N>
struct fixed {
  constexpr operator int() const { return N; }
};
template <int A, int B>
constexpr fixed<A + B> operator+(fixed<A>, fixed<B>) {
  return {};
}

/// An array of `count` default items.
template <class T, int N>
constexpr list<T, N> array_of(fixed<N>) {
  return list<T, N>();
}
template <class T>
heap_array<T> array_of(int count) {
  return heap_array<T>(count);
}
template <class T, class Count>
using array = decltype(array_of<T>(Count{}));

/// Copies all items.
///
/// needs: equal sizes
template <class T, int N>
constexpr void copy_items(list<T, N> const& from, list<T, N>& to) {
  to = from;
}
template <class T>
void copy_items(heap_array<T> const& from, heap_array<T>& to) {
  for (long i = 0; i < from.size(); ++i) to[i] = from[i];
}

}  // namespace pp::detail
