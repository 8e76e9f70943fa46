// SPDX-License-Identifier: BSL-1.0
//
// Numbers and amounts as readable text.
#pragma once

#include <string>

#include <pipe/base/real_text.hpp>
#include <pipe/base/shape.hpp>

namespace pp {

namespace console {

/// 1234567 -> "1,234,567"
template <class = void>
std::string readable_count(long n) {
  std::string text = std::to_string(n);
  long const first = n < 0 ? 1 : 0;
  for (long at = long(text.size()) - 3; at > first; at -= 3) text.insert(std::size_t(at), 1, ',');
  return text;
}

}  // namespace console

namespace detail {

using namespace console;

/// 0.1234 with 2 digits -> "0.12"
template <class = void>
std::string readable_real(double x, int digits) {
  return std::string(real_text(x, digits, std::chars_format::fixed));
}

}  // namespace detail

namespace console {

/// 1, "stage" -> "1 stage"; 4, "stage" -> "4 stages"
template <class = void>
std::string counted(long n, char const* what) {
  return readable_count(n) + " " + what + (n == 1 ? "" : "s");
}

/// 0.248 -> "24.8 %"
template <class = void>
std::string readable_percent(double share) {
  return detail::readable_real(100 * share, 1) + " %";
}

/// 1536 -> "1.5 KiB": powers of 1024, with one digit after the point from KiB up; 0 -> "-".
template <class = void>
std::string readable_bytes(long bytes) {
  if (bytes == 0) return "-";
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double amount = double(bytes);
  int unit = 0;
  // One digit would show 1023.95 as 1024.0.
  for (; amount >= 1023.95 && unit < 5; ++unit) amount /= 1024;
  return detail::readable_real(amount, unit > 0 ? 1 : 0) + " " + units[unit];
}

}  // namespace console

namespace detail {

/// (128, 96) -> "128 x 96"
template <class = void>
std::string readable_shape(sample_shape const& s) {
  std::string text;
  for (int i = 0; i < s.rank; ++i) text += (i > 0 ? " x " : "") + std::to_string(s.extent[i]);
  return text;
}

}  // namespace detail

}  // namespace pp
