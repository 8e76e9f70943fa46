// SPDX-License-Identifier: BSL-1.0
//
// A growing list, in place of std::vector: lists of all types grow by one function, so that a table
// of a further type of rows costs a program next to no compile time.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// Whether a value may be moved by copying its bytes, after which the old place has no value. A
/// type that says so has only members of this kind: std::string is none, as it points into itself.
template <class T>
concept movable_by_bytes =
    std::is_trivially_copyable_v<T> || requires { requires T::moves_by_bytes; };

/// Moves the first `size` bytes of `from`, which is deleted, to new memory of `room` bytes.
///
/// throws: std::bad_alloc, and `from` is unchanged
[[gnu::cold]] PIPE_ONE_COPY inline void* moved_to_room(void* from, std::size_t size,
                                                       std::size_t room) {
  void* const to = ::operator new(room);
  if (size > 0) std::memcpy(to, from, size);
  ::operator delete(from);
  return to;
}

/// Rows on the heap.
///
/// needs: indices below size(), unchecked
/// throws: std::bad_alloc, and exceptions of copies of T
template <class T>
class row_list {
 public:
  static constexpr bool moves_by_bytes = true;
  using value_type = T;

  row_list() = default;
  /// `count` rows without contents.
  [[gnu::cold]] explicit row_list(std::size_t count) { resize(count); }
  [[gnu::cold]] row_list(std::initializer_list<T> rows) { append(rows.begin(), rows.size()); }
  [[gnu::cold]] row_list(row_list const& other) { append(other.rows_, other.size_); }
  row_list(row_list&& other) noexcept
      : rows_(std::exchange(other.rows_, nullptr)), size_(std::exchange(other.size_, 0)),
        room_(std::exchange(other.room_, 0)) {}
  row_list& operator=(row_list other) noexcept {
    swap(other);
    return *this;
  }
  [[gnu::cold]] ~row_list() {
    clear();
    ::operator delete(rows_);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return rows_[i]; }
  T const& operator[](std::size_t i) const { return rows_[i]; }
  T* data() { return rows_; }
  T const* data() const { return rows_; }
  T* begin() { return rows_; }
  T const* begin() const { return rows_; }
  T* end() { return rows_ + size_; }
  T const* end() const { return rows_ + size_; }
  T& front() { return rows_[0]; }
  T const& front() const { return rows_[0]; }
  T& back() { return rows_[size_ - 1]; }
  T const& back() const { return rows_[size_ - 1]; }

  /// Takes memory for `count` rows in all.
  [[gnu::cold]] void reserve(std::size_t count) {
    static_assert(movable_by_bytes<T>);
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    if (count <= room_) return;
    rows_ = static_cast<T*>(moved_to_room(rows_, size_ * sizeof(T), count * sizeof(T)));
    room_ = count;
  }
  [[gnu::cold]] T& push_back(T row) {
    if (size_ == room_) reserve(2 * size_ + 4);
    T* const place = ::new (static_cast<void*>(rows_ + size_)) T(std::move(row));
    ++size_;
    return *place;
  }
  /// Appends copies of rows of another list.
  [[gnu::cold]] void append(T const* rows, std::size_t count) {
    reserve(size_ + count);
    for (std::size_t i = 0; i < count; ++i, ++size_)
      ::new (static_cast<void*>(rows_ + size_)) T(rows[i]);
  }
  /// Takes further rows without contents, or drops the last.
  [[gnu::cold]] void resize(std::size_t count) {
    reserve(count);
    while (size_ < count) ::new (static_cast<void*>(rows_ + size_++)) T();
    while (size_ > count) rows_[--size_].~T();
  }
  [[gnu::cold]] void clear() noexcept {
    while (size_ > 0) rows_[--size_].~T();
  }
  [[gnu::cold]] void pop_back() { rows_[--size_].~T(); }
  void swap(row_list& other) noexcept {
    std::swap(rows_, other.rows_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }
  friend bool operator==(row_list const& a, row_list const& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a.rows_[i] == b.rows_[i])) return false;
    return true;
  }

 private:
  T* rows_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
};

}  // namespace pp::detail
