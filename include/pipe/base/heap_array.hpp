// SPDX-License-Identifier: BSL-1.0
//
// A heap array of fixed size. A std::vector would do, but the code for its growth is a good part of
// what a small program takes to compile.
#pragma once

#include <cstddef>
#include <utility>

namespace pp {

/// law: items are value-initialised, and stay where they are until they are destroyed
template <class T>
class heap_array {
 public:
  heap_array() = default;
  explicit heap_array(long size) : items_(new T[std::size_t(size)]()), size_(size) {}
  heap_array(heap_array&& other) noexcept
      : items_(std::exchange(other.items_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  heap_array& operator=(heap_array&& other) noexcept {
    std::swap(items_, other.items_);
    std::swap(size_, other.size_);
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

}  // namespace pp
