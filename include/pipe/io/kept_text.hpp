// SPDX-License-Identifier: BSL-1.0
//
// A text that a row of a table keeps, in place of std::string, of which every C++20 program
// compiles the copies and moves for itself, once for each place where rows are copied and moved.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// Owner of the characters of a text, which do not change.
///
/// throws: std::bad_alloc where a text is copied
class kept_text {
 public:
  static constexpr bool moves_by_bytes = true;  // see row_list

  kept_text() = default;
  kept_text(std::string_view text) { keep(text); }
  kept_text(char const* text) { keep(text); }
  kept_text(std::string const& text) { keep(text); }
  kept_text(kept_text const& other) { keep(other.view()); }
  kept_text(kept_text&& other) noexcept;
  kept_text& operator=(kept_text other) noexcept;
  ~kept_text() { ::operator delete(begin_); }

  std::string_view view() const { return {begin_, size_}; }
  operator std::string_view() const { return view(); }
  operator std::string() const { return std::string(view()); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  char const* data() const { return begin_; }
  /// The characters with a terminating zero.
  char const* c_str() const { return begin_ != nullptr ? begin_ : ""; }
  bool starts_with(std::string_view prefix) const { return view().starts_with(prefix); }
  bool ends_with(std::string_view suffix) const { return view().ends_with(suffix); }
  friend bool operator==(kept_text const& a, std::string_view b) { return is_equal(a.view(), b); }
  template <std::same_as<kept_text> Other>
  friend bool operator==(kept_text const& a, Other const& b) {
    return is_equal(a.view(), b.view());
  }

 private:
  [[gnu::cold]] void keep(std::string_view text);
  static bool is_equal(std::string_view a, std::string_view b);

  char* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/kept_text.inl>
#endif
