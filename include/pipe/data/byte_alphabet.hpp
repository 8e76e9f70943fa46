// SPDX-License-Identifier: BSL-1.0
//
// The printable characters that stand for bytes in files of byte-level tokenizers: a byte that is
// printable in Latin-1 stands for itself, the other bytes are the characters from U+0100 on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pipe/base/utf8.hpp>
#include <pipe/data/text_pieces.hpp>

namespace pp::detail {

/// The end of the range of characters that stand for bytes.
inline constexpr std::uint32_t byte_alphabet_end = 256 + 68;

constexpr bool is_printable_byte(std::uint32_t c) {
  return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255);
}
/// The character of a byte.
constexpr std::uint32_t character_of_byte(std::uint32_t byte) {
  if (is_printable_byte(byte)) return byte;
  std::uint32_t rank = 0;
  for (std::uint32_t b = 0; b < byte; ++b) rank += !is_printable_byte(b);
  return 256 + rank;
}
/// The byte of a character; -1 for a character that stands for no byte.
constexpr int byte_of_character(std::uint32_t c) {
  if (c < 256) return is_printable_byte(c) ? int(c) : -1;
  for (int byte = 0; byte < 256 && c < byte_alphabet_end; ++byte)
    if (character_of_byte(std::uint32_t(byte)) == c) return byte;
  return -1;
}

/// Bytes as characters.
inline std::string characters_of_bytes(std::string_view bytes) {
  std::string text;
  for (char const c : bytes) append_utf8(text, character_of_byte(static_cast<unsigned char>(c)));
  return text;
}
/// Characters as bytes; the text itself if a character stands for no byte.
inline std::string bytes_of_characters(std::string_view text) {
  std::string bytes;
  for (std::string_view left = text; !left.empty();) {
    character const c = first_character(left);
    int const byte = byte_of_character(c.code_point);
    if (byte < 0) return std::string(text);
    bytes += char(byte);
    left.remove_prefix(c.bytes);
  }
  return bytes;
}

}  // namespace pp::detail
