// SPDX-License-Identifier: BSL-1.0
//
// A string literal as a template argument: how the parts of a model are named, `Stash<"skip">`.
#pragma once

#include <cstddef>
#include <string_view>

namespace pp {

/// The characters of a literal with their terminating zero. Two literals with the same characters
/// are the same template argument, so equal names are equal types.
template <std::size_t Size>
struct Text {
  char characters[Size]{};

  constexpr Text(char const (&literal)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) characters[i] = literal[i];
  }
  /// The characters without the terminating zero.
  constexpr std::string_view view() const { return {characters, Size - 1}; }
};

}  // namespace pp
