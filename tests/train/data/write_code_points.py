#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes include/pipe/data/code_points.hpp from the Unicode data of this Python: write_code_points.py > FILE."""
import textwrap
import unicodedata


def stretches(category):
    """Lengths of stretches of code points, alternately outside of a category and in it."""
    found, begin, is_in = [], 0, False
    for c in range(0x110000):
        if (unicodedata.category(chr(c))[0] == category) != is_in:
            found.append(c - begin)
            begin, is_in = c, not is_in
    assert not is_in and max(found) < 65536
    return found


def table(name, category):
    numbers = textwrap.fill(", ".join(map(str, stretches(category))), 100, initial_indent="    ", subsequent_indent="    ")
    return f"// clang-format off\ninline constexpr std::uint16_t {name}[] = {{\n{numbers}}};\n// clang-format on\n"


print(f"""// SPDX-License-Identifier: BSL-1.0
//
// Letters, numbers and white space among the code points of Unicode {unicodedata.unidata_version}, by which tokenizers
// split texts. Made by tests/train/data/write_code_points.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pp::detail {{

/// Lengths of stretches of code points, alternately outside of general category L and in it.
{table("letter_stretches", "L")}
/// The same for general category N.
{table("number_stretches", "N")}
/// A set of code points: where its stretches begin and end.
template <std::size_t Size>
struct code_point_set {{
  std::uint32_t borders[Size];

  constexpr explicit code_point_set(std::uint16_t const (&stretches)[Size]) : borders{{}} {{
    std::uint32_t at = 0;
    for (std::size_t i = 0; i < Size; ++i) borders[i] = at += stretches[i];
  }}
  constexpr bool has(std::uint32_t c) const {{
    std::size_t first = 0, end = Size;  // the number of borders up to c is in [first, end]
    while (first < end) {{
      std::size_t const middle = (first + end) / 2;
      if (borders[middle] <= c)
        first = middle + 1;
      else
        end = middle;
    }}
    return first % 2 == 1;
  }}
}};
inline constexpr code_point_set set_of_letters(letter_stretches);
inline constexpr code_point_set set_of_numbers(number_stretches);

constexpr bool is_letter(std::uint32_t c) {{
  return c < 128 ? (c | 32) >= 'a' && (c | 32) <= 'z' : set_of_letters.has(c);
}}
constexpr bool is_number(std::uint32_t c) {{
  return c < 128 ? c >= '0' && c <= '9' : set_of_numbers.has(c);
}}
/// Property White_Space.
constexpr bool is_space(std::uint32_t c) {{
  return c == ' ' || (c >= 9 && c <= 13) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}}

}}  // namespace pp::detail""")
