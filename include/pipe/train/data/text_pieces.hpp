// SPDX-License-Identifier: BSL-1.0
//
// The pieces of a text that byte-pair encoding works within, as GPT-2 splits it: a word with the
// space before it, a number, punctuation, or white space. Its pattern is
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// source: Radford et al., "Language models are unsupervised multitask learners", 2019
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <pipe/train/data/code_points.hpp>

namespace pp::detail {

/// A code point and its bytes. Bytes that are no UTF-8 are one character each, none of a word.
struct character {
  std::uint32_t code_point;
  std::size_t bytes;
};

/// The first character of a text that is not empty.
constexpr character first_character(std::string_view text) {
  auto const byte = [&](std::size_t i) {
    return std::uint32_t(static_cast<unsigned char>(text[i]));
  };
  std::uint32_t const first = byte(0);
  std::size_t const bytes = first < 0x80   ? 1
                            : first < 0xC2 ? 0
                            : first < 0xE0 ? 2
                            : first < 0xF0 ? 3
                            : first < 0xF5 ? 4
                                           : 0;
  if (bytes == 0 || bytes > text.size()) return {0xFFFD, 1};
  if (bytes == 1) return {first, 1};
  std::uint32_t code_point = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  return {code_point, bytes};
}

/// The length in bytes of the first piece of a text that is not empty.
constexpr std::size_t first_piece(std::string_view text) {
  for (std::string_view const ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  enum class kind { space, letter, number, other };
  auto const kind_of = [](std::uint32_t c) {
    return is_letter(c)   ? kind::letter
           : is_number(c) ? kind::number
           : is_space(c)  ? kind::space
                          : kind::other;
  };
  std::size_t at = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  kind const first = kind_of(first_character(text.substr(at)).code_point);
  if (first == kind::space) at = 0;
  std::size_t last = at;  // begin of the last character
  while (at < text.size()) {
    character const c = first_character(text.substr(at));
    if (kind_of(c.code_point) != first) break;
    last = at;
    at += c.bytes;
  }
  // White space before a word leaves its last character to it.
  return first == kind::space && at < text.size() && last > 0 ? last : at;
}

}  // namespace pp::detail
