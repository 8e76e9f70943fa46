// SPDX-License-Identifier: BSL-1.0
//
// A heap array of fixed size, in place of std::vector, whose code for growth is a good part of the
// compile time of a small program.
#pragma once

#include <cstddef>

#include <pipe/base/view.hpp>

namespace pp::detail {

/// `size` items on the heap; movable, not copyable.
///
/// law:   items are value-initialised and keep their addresses until they are destroyed, also when
///        the array is moved
/// needs: size >= 0; indices in [0, size()), unchecked
/// throws: std::bad_alloc, and exceptions of the constructor of T
template <class T>
class heap_array {
 public:
  heap_array() = default;
  explicit heap_array(long size) : items_(new T[std::size_t(size)]()), size_(size) {}
  heap_array(heap_array&& other) noexcept : items_(other.items_), size_(other.size_) {
    other.items_ = nullptr;
    other.size_ = 0;
  }
  heap_array& operator=(heap_array&& other) noexcept {
    T* const items = items_;
    long const size = size_;
    items_ = other.items_;
    size_ = other.size_;
    other.items_ = items;
    other.size_ = size;
    return *this;
  }
  ~heap_array() { delete[] items_; }

  long size() const { return size_; }
  T& operator[](long i) { return items_[i]; }
  T const& operator[](long i) const { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + size_; }
  T const* begin() const { return items_; }
  T const* end() const { return items_ + size_; }

 private:
  T* items_ = nullptr;
  long size_ = 0;
};

/// Makes an array of what list(sink) pushes, which is called twice: first to count.
template <class T, class List>
[[gnu::cold]] void fill(heap_array<T>& items, List const& list) {
  sink<T> counted;
  list(counted);
  items = heap_array<T>(counted.count);
  sink<T> filled{items.begin()};
  list(filled);
}

}  // namespace pp::detail
