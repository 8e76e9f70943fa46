// SPDX-License-Identifier: BSL-1.0
//
// Names of templates, made of the name of their argument.
#pragma once

#include <cstddef>
#include <initializer_list>

namespace pp::detail {

inline constexpr char no_text[] = "";

/// The text before, Named::name, and the text after.
template <char const* Before, class Named, char const* After = no_text>
struct composed_name {
  static constexpr std::size_t length(char const* text) {
    std::size_t n = 0;
    while (text[n] != '\0') ++n;
    return n;
  }
  char text[length(Before) + length(Named::name) + length(After) + 1]{};
  constexpr composed_name() {
    char* to = text;
    for (char const* part : {Before, static_cast<char const*>(Named::name), After})
      for (; *part != '\0'; ++part) *to++ = *part;
  }
};
template <char const* Before, class Named, char const* After = no_text>
inline constexpr composed_name<Before, Named, After> name_composed_of{};

}  // namespace pp::detail
