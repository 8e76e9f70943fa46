// SPDX-License-Identifier: BSL-1.0
//
// The shape of a tensor in a file.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// A shape: at most 32 extents, without memory of its own.
///
/// law: of more extents, the first 32 are kept and all are counted, so that size() says that the
///      shape is no shape of a file
class extents {
 public:
  static constexpr std::size_t most = 32;

  extents() = default;
  extents(std::span<long const> of) { assign(of.data(), of.size()); }
  extents(std::vector<long> const& of) { assign(of.data(), of.size()); }
  extents(std::initializer_list<long> of) { assign(of.begin(), of.size()); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  long* begin() { return extents_; }
  long const* begin() const { return extents_; }
  long* end() { return extents_ + kept(); }
  long const* end() const { return extents_ + kept(); }
  long const* data() const { return extents_; }
  long& operator[](std::size_t i) { return extents_[i]; }
  long const& operator[](std::size_t i) const { return extents_[i]; }
  long front() const { return extents_[0]; }
  long back() const { return extents_[size_ - 1]; }
  void push_back(long extent);
  /// Inserts an extent before the others.
  [[gnu::cold]] void push_front(long extent);
  operator std::span<long const>() const { return {extents_, kept()}; }
  friend bool operator==(extents const& a, extents const& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.kept(); ++i)
      if (a.extents_[i] != b.extents_[i]) return false;
    return true;
  }

 private:
  std::size_t kept() const { return size_ < most ? size_ : most; }
  [[gnu::cold]] void assign(long const* from, std::size_t count);

  std::size_t size_ = 0;
  long extents_[most] = {};
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/extents.inl>
#endif
