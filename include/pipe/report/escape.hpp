// SPDX-License-Identifier: BSL-1.0
//
// Escaping of names for documents. For any input the document stays well-formed, no part of it
// becomes markup or script, and no control sequence reaches a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <pipe/io/json_string.hpp>

namespace pp {

namespace detail {

/// Whether a character is a C0 or C1 control character or DEL.
/// needs: one complete character
constexpr bool is_control(std::string_view character) {
  unsigned const first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7F ||
         (first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
}

/// Text escaped for XML and HTML, between tags and in quoted attributes.
///
/// law: characters that XML 1.0 forbids even if escaped (control characters, U+FFFE, U+FFFF) become
///      U+FFFD
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

}  // namespace detail

namespace console {

/// Text escaped for a terminal: control characters become U+FFFD, so that no escape sequence is
/// executed.
inline std::string terminal_escaped(std::string_view text) {
  std::string safe;
  detail::for_each_character(text, [&](std::string_view c) {
    safe += detail::is_control(c) ? detail::replacement_character : c;
  });
  return safe;
}

}  // namespace console

namespace detail {
using namespace console;
}  // namespace detail

}  // namespace pp
