// SPDX-License-Identifier: BSL-1.0
//
// Names inside documents. A title may come from anywhere: whatever is in it, the document stays
// well-formed, nothing in it becomes markup or script, and a terminal is not told to do anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <pipe/base/utf8.hpp>

namespace pp {

namespace detail {

/// What stands for a byte or a character that may not be there: U+FFFD.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Calls use(piece) for the characters of a text, one by one; for a byte that is no UTF-8, with the
/// replacement character.
template <class Use>
void for_each_character(std::string_view text, Use use) {
  while (!text.empty()) {
    std::size_t bytes = 1;
    while (bytes < 4 && valid_utf8_bytes(text.substr(0, bytes)) < bytes) ++bytes;
    bool const valid = bytes <= text.size() && valid_utf8_bytes(text.substr(0, bytes)) == bytes;
    use(valid ? text.substr(0, bytes) : replacement_character);
    text.remove_prefix(valid ? bytes : 1);
  }
}

/// C0 and C1 control characters and DEL.
constexpr bool is_control(std::string_view character) {
  unsigned const first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7F ||
         (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
}

/// Text for XML and HTML, between tags and in quoted attributes.
///
/// law: what XML 1.0 forbids, even escaped (control characters, U+FFFE, U+FFFF), becomes U+FFFD
inline std::string xml_escaped(std::string_view text) {
  std::string safe;
  for_each_character(text, [&](std::string_view c) {
    bool const forbidden = is_control(c) || c == "\xEF\xBF\xBE" || c == "\xEF\xBF\xBF";
    safe += c == "&"    ? "&amp;"
            : c == "<"  ? "&lt;"
            : c == ">"  ? "&gt;"
            : c == "\"" ? "&quot;"
            : c == "'"  ? "&#39;"
            : forbidden ? replacement_character
                        : c;
  });
  return safe;
}

/// A string of JSON with its quotes.
///
/// law: has no <, > or & and no line separator, so it may stand in a script of an HTML page, too
inline std::string json_string(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string safe = "\"";
  for_each_character(text, [&](std::string_view c) {
    unsigned const byte = static_cast<unsigned char>(c[0]);
    if (byte < 0x20 || byte == 0x7F || c == "<" || c == ">" || c == "&")
      ((safe += "\\u00") += digits[byte >> 4]) += digits[byte & 15];
    else if (c == "\"" || c == "\\")
      (safe += '\\') += c;
    else if (c == "\xE2\x80\xA8" || c == "\xE2\x80\xA9")
      (safe += "\\u202") += c == "\xE2\x80\xA8" ? '8' : '9';
    else
      safe += c;
  });
  return safe + "\"";
}

}  // namespace detail

/// Text for a terminal: a control character becomes U+FFFD, so that no sequence of them is obeyed.
inline std::string terminal_escaped(std::string_view text) {
  std::string safe;
  detail::for_each_character(text, [&](std::string_view c) {
    safe += detail::is_control(c) ? detail::replacement_character : c;
  });
  return safe;
}

}  // namespace pp
