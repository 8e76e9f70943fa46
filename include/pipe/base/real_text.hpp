// SPDX-License-Identifier: BSL-1.0
//
// Real numbers as text and back, with the digits of printf in the C locale: a program that sets a
// locale with a decimal comma has the same files, pages and messages.
#pragma once

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// A number as printf's %.*g writes it; with chars_format::fixed or scientific as %.*f or %.*e.
///
/// needs: at most 17 digits
class real_text {
 public:
  PIPE_ONE_COPY real_text(double x, int digits,
                          std::chars_format form = std::chars_format::general) noexcept
      : size_(std::to_chars(text_, text_ + sizeof text_, x, form, digits).ptr - text_) {}

  operator std::string_view() const { return {text_, static_cast<std::size_t>(size_)}; }
  std::string_view view() const { return *this; }

 private:
  char text_[336];  // of -1e308 with 17 digits after the point
  std::ptrdiff_t size_;
};

/// Sets x to the number that a whole text is, as real_text writes it, or returns false if it is
/// none that a double holds.
inline bool read_real(std::string_view text, double& x) noexcept {
  char const* const end = text.data() + text.size();
  double found = 0;
  std::from_chars_result const read = std::from_chars(text.data(), end, found);
  if (read.ec != std::errc() || read.ptr != end) return false;
  x = found;
  return true;
}

}  // namespace pp::detail
