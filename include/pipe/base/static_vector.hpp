// SPDX-License-Identifier: BSL-1.0
//
// A vector of fixed capacity, filled by constexpr passes and read by kernels.
// `std::array::operator[]` is not callable in device code and `std::vector` does not survive
// constant evaluation, so a list that a constant holds is of this type.
#pragma once

#include <concepts>
#include <cstddef>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// Up to `Capacity` items, stored inline.
///
/// law:   size() <= Capacity
/// needs: push_back: size() < Capacity; unchecked at run time, an error in a constant evaluation
/// note:  items beyond size() are value-initialised, so the type is structural and trivially
///        copyable where T is: it may be a constant, a kernel argument or a template argument
template <class T, std::size_t Capacity>
struct static_vector {
  T items[Capacity > 0 ? Capacity : 1]{};
  std::size_t count = 0;

  template <std::integral Index>
  PIPE_HD constexpr T& operator[](Index i) {
    return items[i];
  }
  template <std::integral Index>
  PIPE_HD constexpr T const& operator[](Index i) const {
    return items[i];
  }
  PIPE_HD constexpr std::size_t size() const { return count; }
  PIPE_HD constexpr bool empty() const { return count == 0; }
  PIPE_HD constexpr T& back() { return items[count - 1]; }
  PIPE_HD constexpr T const& back() const { return items[count - 1]; }
  PIPE_HD constexpr T* begin() { return items; }
  PIPE_HD constexpr T* end() { return items + count; }
  PIPE_HD constexpr T const* begin() const { return items; }
  PIPE_HD constexpr T const* end() const { return items + count; }
  PIPE_HD constexpr void push_back(T const& item) { items[count++] = item; }
  PIPE_HD constexpr void clear() { count = 0; }
  static constexpr std::size_t capacity() { return Capacity; }

  friend constexpr bool operator==(static_vector const& a, static_vector const& b) {
    if (a.count != b.count) return false;
    for (std::size_t i = 0; i < a.count; ++i)
      if (!(a.items[i] == b.items[i])) return false;
    return true;
  }
};

}  // namespace pp::detail
