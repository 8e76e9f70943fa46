// SPDX-License-Identifier: BSL-1.0
//
// A fixed-size array that constexpr functions return and device code indexes; unlike a C array it
// may be empty.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

/// `Count` items, all in use. Indices are unchecked at run time.
template <class T, int Count>
struct list {
  T items[Count > 0 ? Count : 1]{};
  PIPE_HD constexpr T& operator[](int i) { return items[i]; }
  PIPE_HD constexpr T const& operator[](int i) const { return items[i]; }
  PIPE_HD constexpr T* begin() { return items; }
  PIPE_HD constexpr T const* begin() const { return items; }
  PIPE_HD constexpr T* end() { return items + Count; }
  PIPE_HD constexpr T const* end() const { return items + Count; }
  static constexpr int size() { return Count; }
};

}  // namespace pp::detail
