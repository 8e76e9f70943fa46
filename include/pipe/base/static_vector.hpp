// SPDX-License-Identifier: BSL-1.0
//
// A vector of fixed capacity that constexpr passes fill and kernels read. `std::array::operator[]`
// cannot be called in device code and `std::vector` does not survive constant evaluation, so every
// list of the compiler inside is one of these.
#pragma once

#include <concepts>
#include <cstddef>

#include <pipe/base/config.hpp>

namespace pp {

/// law: size() <= Capacity; pushing beyond it is not a constant expression at compile time.
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

}  // namespace pp
