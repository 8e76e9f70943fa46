// SPDX-License-Identifier: BSL-1.0
//
// Definitions of base/joined_text.hpp.

#include <cstddef>

#include <pipe/base/utf8.hpp>

namespace pp::detail {

PIPE_DEFINED PIPE_ONE_COPY void append_text(std::string& to, text_parts parts) {
  heap_array<char> const all = sentence(parts);
  to.append(all.begin(), std::size_t(all.size()) - 1);
}
PIPE_DEFINED PIPE_ONE_COPY std::string joined_text(text_parts parts) {
  std::string all;
  append_text(all, parts);
  return all;
}
PIPE_DEFINED PIPE_ONE_COPY long write_in_quotes(piece const& name, char* to) {
  std::string const shown = in_quotes(name.text());
  if (to != nullptr) shown.copy(to, shown.size());
  return long(shown.size());
}

}  // namespace pp::detail
