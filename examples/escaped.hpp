// SPDX-License-Identifier: BSL-1.0
//
// Texts in the pages that examples write.
#pragma once

#include <string>

#include <pipe/report/escape.hpp>

/// A text for XML and HTML: valid UTF-8 without control characters.
inline std::string escaped(std::string const& text) {
  std::string safe;
  for (char const c : pp::console::terminal_escaped(text))
    safe += c == '&'   ? std::string("&amp;")
            : c == '<' ? "&lt;"
            : c == '>' ? "&gt;"
            : c == '"' ? "&quot;"
                       : std::string(1, c);
  return safe;
}
