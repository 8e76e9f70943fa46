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

#include <pipe/base/config.hpp>

namespace pp::detail {

/// Whether a value may be moved by copying its bytes, after which the old place has no value. A
/// type that says so has only members of this kind: std::string is none, as it points into itself.
template <class T>
concept movable_by_bytes =
    std::is_trivially_copyable_v<T> || requires { requires T::moves_by_bytes; };

/// The memory of a list, without the type of its rows.
class row_memory {
 public:
  row_memory() = default;
  row_memory(row_memory&& other) noexcept;
  [[gnu::cold]] ~row_memory();

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 protected:
  [[gnu::cold]] void swap(row_memory& other) noexcept;
  /// Takes memory for `count` rows of `bytes` bytes in all.
  ///
  /// throws: std::bad_alloc, and nothing is changed
  [[gnu::cold]] void take_room(std::size_t count, std::size_t bytes);
  /// The place of a further row, which does not count yet.
  [[gnu::cold]] void* next_place(std::size_t bytes);

  void* rows_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
};

/// Rows on the heap.
///
/// needs: indices below size(), unchecked
/// throws: std::bad_alloc, and exceptions of copies of T
template <class T>
class row_list : public row_memory {
 public:
  static constexpr bool moves_by_bytes = true;
  using value_type = T;

  row_list() = default;
  /// `count` rows without contents.
  [[gnu::cold]] explicit row_list(std::size_t count) : row_list() { resize(count); }
  [[gnu::cold]] row_list(std::initializer_list<T> rows) : row_list() {
    append(rows.begin(), rows.size());
  }
  [[gnu::cold]] row_list(row_list const& other) : row_list() { append(other.data(), other.size_); }
  row_list(row_list&& other) noexcept = default;
  row_list& operator=(row_list other) noexcept {
    swap(other);
    return *this;
  }
  ~row_list() {
    if constexpr (!std::is_trivially_destructible_v<T>) clear();
  }

  T* data() { return static_cast<T*>(rows_); }
  T const* data() const { return static_cast<T const*>(rows_); }
  T& operator[](std::size_t i) { return static_cast<T*>(rows_)[i]; }
  T const& operator[](std::size_t i) const { return static_cast<T const*>(rows_)[i]; }
  T* begin() { return static_cast<T*>(rows_); }
  T const* begin() const { return static_cast<T const*>(rows_); }
  T* end() { return static_cast<T*>(rows_) + size_; }
  T const* end() const { return static_cast<T const*>(rows_) + size_; }
  T& front() { return *static_cast<T*>(rows_); }
  T const& front() const { return *static_cast<T const*>(rows_); }
  T& back() { return static_cast<T*>(rows_)[size_ - 1]; }
  T const& back() const { return static_cast<T const*>(rows_)[size_ - 1]; }

  /// Takes memory for `count` rows in all.
  void reserve(std::size_t count) { take_room(count, sizeof(T)); }
  [[gnu::cold]] T& push_back(T row) {
    static_assert(movable_by_bytes<T>);
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    T* const place = ::new (next_place(sizeof(T))) T(static_cast<T&&>(row));
    ++size_;
    return *place;
  }
  /// Appends copies of rows of another list.
  [[gnu::cold]] void append(T const* rows, std::size_t count) {
    static_assert(movable_by_bytes<T>);
    take_room(size_ + count, sizeof(T));
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (count > 0) std::memcpy(static_cast<T*>(rows_) + size_, rows, count * sizeof(T));
      size_ += count;
    } else {
      for (std::size_t i = 0; i < count; ++i, ++size_)
        ::new (static_cast<T*>(rows_) + size_) T(rows[i]);
    }
  }
  /// Takes further rows without contents, or drops the last.
  [[gnu::cold]] void resize(std::size_t count) {
    static_assert(movable_by_bytes<T>);
    take_room(count, sizeof(T));
    for (; size_ < count; ++size_) ::new (static_cast<T*>(rows_) + size_) T();
    while (size_ > count) pop_back();
  }
  [[gnu::cold]] void clear() noexcept {
    while (size_ > 0) pop_back();
  }
  void pop_back() { static_cast<T*>(rows_)[--size_].~T(); }
  void swap(row_list& other) noexcept { row_memory::swap(other); }
  friend bool operator==(row_list const& a, row_list const& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/row_list.inl>
#endif
