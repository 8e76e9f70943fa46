// SPDX-License-Identifier: BSL-1.0
//
// An owner of one object, in place of std::unique_ptr: <memory> would be a twentieth of what nvcc
// reads with this library.
#pragma once

#include <cstddef>
#include <utility>

namespace pp::detail {

/// Ends what `new` began.
struct delete_it {
  template <class T>
  void operator()(T* made) const {
    delete made;
  }
};

/// Owner of what a pointer leads to, or of nothing. Movable, not copyable. `End`: what ends it, a
/// function or an object of its own.
///
/// law: end(pointer) is called once, unless there is nothing
template <class T, class End = delete_it>
class owner {
 public:
  static constexpr bool moves_by_bytes = true;  // see row_list

  owner() = default;
  owner(std::nullptr_t) {}
  explicit owner(T* made, End end = {}) : made_(made), end_(end) {}
  owner(owner&& other) noexcept : made_(other.made_), end_(other.end_) { other.made_ = nullptr; }
  owner& operator=(owner&& other) noexcept {
    T* const made = made_;
    End const end = end_;
    made_ = other.made_, end_ = other.end_;
    other.made_ = made, other.end_ = end;
    return *this;
  }
  ~owner() {
    if (made_ != nullptr) end_(made_);
  }

  T* get() const { return made_; }
  T* operator->() const { return made_; }
  /// needs: T is not void
  decltype(auto) operator*() const { return *made_; }
  bool operator==(std::nullptr_t) const { return made_ == nullptr; }

 private:
  T* made_ = nullptr;
  End end_{};
};

}  // namespace pp::detail
