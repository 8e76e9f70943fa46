// SPDX-License-Identifier: BSL-1.0
//
// Working memory of an algorithm that runs both at compile time and at run time: its size is an
// ordinary number in both cases, and it is freed when the algorithm returns. Items are accessed
// through a bare pointer, because compilers count the steps of a constant evaluation and clang++
// counts two for every call of an operator[].
#pragma once

#include <cstddef>

namespace pp::detail {

/// `size` values, all initialised to `initial`, or to T{}. Not copyable.
template <class T>
struct scratch {
  T* const item;

  constexpr explicit scratch(long size) : item(new T[static_cast<std::size_t>(size)]{}) {}
  constexpr scratch(long size, T initial) : scratch(size) {
    for (long i = 0; i < size; ++i) item[i] = initial;
  }
  constexpr ~scratch() { delete[] item; }
  scratch(scratch const&) = delete;
  scratch& operator=(scratch const&) = delete;
};

/// Temporary rows: one list of `T` per rank, each with at most `length` items.
template <class T>
class scratch_rows {
 public:
  constexpr scratch_rows(int ranks, int length)
      : length_(length), item_(long(ranks) * length), size_(ranks) {}
  constexpr int size(int rank) const { return size_.item[rank]; }
  constexpr T const& at(int rank, int position) const {
    return item_.item[long(rank) * length_ + position];
  }
  constexpr void push(int rank, T const& item) {
    item_.item[long(rank) * length_ + size_.item[rank]++] = item;
  }

 private:
  int length_;
  scratch<T> item_;
  scratch<int> size_;
};

}  // namespace pp::detail
