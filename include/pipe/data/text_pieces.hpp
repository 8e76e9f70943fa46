// SPDX-License-Identifier: BSL-1.0
//
// The pieces of a text that byte-pair encoding works within: a word with the space before it, a
// number, punctuation, or white space. GPT-2's pattern is
//
//     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// source: Radford et al., "Language models are unsupervised multitask learners", 2019
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <pipe/data/code_points.hpp>

namespace pp {

/// The rule that splits a text into pieces before pairs of bytes are merged.
enum class text_split : unsigned char {
  gpt2,    ///< by GPT-2's pattern
  digits,  ///< by GPT-2's pattern, after each digit has become a piece of its own: SmolLM's
  llama3   ///< by LLaMA-3's pattern, see llama3_pattern
};

}  // namespace pp

namespace pp::detail {

/// LLaMA-3's pattern, as its tokenizer.json has it: numbers in groups of three, line ends joined to
/// the piece before them.
inline constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// A code point and its bytes. Each byte that is no UTF-8 is a character of its own, and of no
/// word.
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

/// The kinds of characters that patterns distinguish.
enum class character_kind : unsigned char { space, letter, number, other };
constexpr character_kind kind_of(std::uint32_t c) {
  return is_letter(c)   ? character_kind::letter
         : is_number(c) ? character_kind::number
         : is_space(c)  ? character_kind::space
                        : character_kind::other;
}
/// The kind of the first character of a text that is not empty.
constexpr character_kind first_kind(std::string_view text) {
  return kind_of(first_character(text).code_point);
}

/// A stretch of characters of one kind: its end, and the begin of its last character.
struct stretch_of_kind {
  std::size_t end, last;
};
/// The characters from `at` on, `most` at most, that are of a kind.
constexpr stretch_of_kind stretch_from(std::string_view text, std::size_t at, character_kind kind,
                                       std::size_t most = std::string_view::npos) {
  stretch_of_kind stretch{at, at};
  for (; most > 0 && stretch.end < text.size(); --most) {
    character const c = first_character(text.substr(stretch.end));
    if (kind_of(c.code_point) != kind) break;
    stretch.last = stretch.end;
    stretch.end += c.bytes;
  }
  return stretch;
}
/// The end of the white space at the beginning of a text; its last character is left to the word
/// that follows.
constexpr std::size_t end_of_space(std::string_view text, stretch_of_kind const& stretch) {
  return stretch.end < text.size() && stretch.last > 0 ? stretch.last : stretch.end;
}
/// The length of the ending, such as 's, with which a text begins; 0 if there is none.
constexpr std::size_t first_ending(std::string_view text, bool with_capitals) {
  for (std::string_view const ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    std::size_t same = 0;
    while (same < ending.size() && same < text.size() &&
           (text[same] == ending[same] ||
            (with_capitals && same > 0 && (text[same] | 32) == ending[same])))
      ++same;
    if (same == ending.size()) return same;
  }
  return 0;
}

/// The length in bytes of the first piece of a text that is not empty, by GPT-2's pattern.
constexpr std::size_t first_piece(std::string_view text) {
  if (std::size_t const ending = first_ending(text, false); ending > 0) return ending;
  std::size_t const at = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  character_kind const kind = first_kind(text.substr(at));
  if (kind != character_kind::space) return stretch_from(text, at, kind).end;
  return end_of_space(text, stretch_from(text, 0, kind));
}
/// The length in bytes of the first piece of a text that is not empty, by LLaMA-3's pattern.
constexpr std::size_t first_piece_of_llama3(std::string_view text) {
  if (std::size_t const ending = first_ending(text, true); ending > 0) return ending;
  auto const is_line_end = [](char c) { return c == '\r' || c == '\n'; };
  character_kind const kind = first_kind(text);
  if (kind == character_kind::number) return stretch_from(text, 0, kind, 3).end;
  std::size_t const before =
      kind == character_kind::letter || is_line_end(text[0]) ? 0 : first_character(text).bytes;
  if (std::size_t const end = stretch_from(text, before, character_kind::letter).end; end > before)
    return end;
  std::size_t const at = text[0] == ' ' ? 1 : 0;
  if (std::size_t end = stretch_from(text, at, character_kind::other).end; end > at) {
    while (end < text.size() && is_line_end(text[end])) ++end;
    return end;
  }
  stretch_of_kind const stretch = stretch_from(text, 0, kind);
  for (std::size_t end = stretch.end; end > 0; --end)
    if (is_line_end(text[end - 1])) return end;
  return end_of_space(text, stretch);
}

/// Calls use(piece) for the pieces of a text, in its order.
template <class Use>
constexpr void for_each_piece(text_split rule, std::string_view text, Use use) {
  while (!text.empty()) {
    std::string_view part = text;
    if (rule == text_split::digits) {  // a digit, or what is before the next digit
      std::size_t end = 0;
      while (end < text.size() && first_kind(text.substr(end)) != character_kind::number)
        end += first_character(text.substr(end)).bytes;
      part = text.substr(0, end > 0 ? end : first_character(text).bytes);
    }
    text.remove_prefix(part.size());
    while (!part.empty()) {
      std::size_t const size =
          rule == text_split::llama3 ? first_piece_of_llama3(part) : first_piece(part);
      use(part.substr(0, size));
      part.remove_prefix(size);
    }
  }
}

}  // namespace pp::detail
