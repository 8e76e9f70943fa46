// SPDX-License-Identifier: BSL-1.0
//
// Strings of JSON, for any input.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <pipe/base/utf8.hpp>

namespace pp::detail {

/// U+FFFD, the replacement for invalid bytes and forbidden characters.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Calls use(piece) for each character of a text; for each byte that is not UTF-8, with the
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

/// A JSON string with quotes.
///
/// law: contains no <, > or & and no line separator, so it may also stand in a script of an HTML
///      page
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

}  // namespace pp::detail
