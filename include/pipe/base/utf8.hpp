// SPDX-License-Identifier: BSL-1.0
//
// UTF-8 as the Unicode standard defines it (table 3-7): no overlong forms, no surrogates, nothing
// above U+10FFFF. And the quoting of names from files in error messages: a terminal obeys the
// control characters that it is sent, so nothing unprintable is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pp::detail {

/// What some editors write at the beginning of a text in UTF-8.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The length in bytes of the longest valid UTF-8 prefix; text.size() if all of it is valid.
constexpr std::size_t valid_utf8_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    unsigned const first = static_cast<unsigned char>(text[at]);
    int const more = first < 0x80   ? 0
                     : first < 0xC2 ? -1
                     : first < 0xE0 ? 1
                     : first < 0xF0 ? 2
                     : first < 0xF5 ? 3
                                    : -1;
    if (more < 0 || text.size() - at <= std::size_t(more)) return at;
    // The range of the second byte excludes overlong forms (E0, F0), surrogates (ED) and code
    // points above U+10FFFF (F4).
    unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    for (int i = 1; i <= more; ++i, least = 0x80, most = 0xBF) {
      unsigned const next = static_cast<unsigned char>(text[at + std::size_t(i)]);
      if (next < least || next > most) return at;
    }
    at += std::size_t(more) + 1;
  }
  return at;
}

/// The number of code points of valid UTF-8: of columns in a terminal, but for wide and combining
/// characters.
constexpr std::size_t code_points(std::string_view text) {
  std::size_t count = 0;
  for (char const c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

/// Appends the 1 to 4 bytes of a code point.
///
/// needs: a Unicode scalar value: no surrogate, at most 0x10FFFF
template <class = void>
[[gnu::cold]] void append_utf8(std::string& text, std::uint32_t code_point) {
  auto const tail = [&](int shift) { text += char(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    text += char(code_point);
  } else if (code_point < 0x800) {
    text += char(0xC0 | code_point >> 6);
    tail(0);
  } else if (code_point < 0x10000) {
    text += char(0xE0 | code_point >> 12);
    tail(6), tail(0);
  } else {
    text += char(0xF0 | code_point >> 18);
    tail(12), tail(6), tail(0);
  }
}

/// A name for a message: in quotes, with bytes other than printable ASCII as \xNN, cut after its
/// first 100 bytes.
template <class = void>
[[gnu::cold]] std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 100;
  constexpr char digits[] = "0123456789abcdef";
  std::string shown = "'";
  for (char const c : name.substr(0, longest)) {
    unsigned const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F)
      shown += c;
    else
      (((shown += "\\x") += digits[byte >> 4]) += digits[byte & 15]);
  }
  return shown + (name.size() > longest ? "'..." : "'");
}

}  // namespace pp::detail
