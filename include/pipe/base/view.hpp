// SPDX-License-Identifier: BSL-1.0
//
// The arguments of passes: a range to read (view) and a list to fill (sink). Both point into memory
// of the caller, an exactly sized constant or the heap, so that one function serves the compiler
// and the program.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

/// A half-open range of indices, [begin, end).
struct range {
  int begin = 0, end = 0;
  constexpr int size() const { return end - begin; }
  constexpr bool contains(int i) const { return i >= begin && i < end; }
};

/// A read-only list; the memory is the caller's. Indices are unchecked at run time.
template <class T>
struct view {
  T const* items = nullptr;
  int count = 0;
  PIPE_HD constexpr T const& operator[](int i) const { return items[i]; }
  PIPE_HD constexpr T const* begin() const { return items; }
  PIPE_HD constexpr T const* end() const { return items + count; }
  PIPE_HD constexpr int size() const { return count; }
  /// The items of a range of indices.
  constexpr view part(range of) const { return view{items + of.begin, of.size()}; }
};

/// A list to fill.
///
/// law:   without memory (`items` is null) it only counts: a pass that runs twice, first on empty
///        sinks and then on memory of the counted size, fills exactly that memory
/// needs: with memory, at least as many items as are pushed; unchecked at run time
template <class T>
struct sink {
  T* items = nullptr;
  int count = 0;
  constexpr void push_back(T const& item) {
    if (items != nullptr) items[count] = item;
    ++count;
  }
  constexpr view<T> filled() const { return view<T>{items, count}; }
};

}  // namespace pp::detail
