// SPDX-License-Identifier: BSL-1.0
//
// A string literal as a template argument: how a model's parts get names, `Stash<"skip">`.
#pragma once

#include <cstddef>
#include <string_view>

namespace pp {

template <std::size_t Size>
struct text {
  char characters[Size]{};

  constexpr text(char const (&literal)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) characters[i] = literal[i];
  }
  constexpr std::string_view view() const { return {characters, Size - 1}; }
};

}  // namespace pp
