// SPDX-License-Identifier: BSL-1.0
//
// Definitions of checkpoint/resumed_run.hpp.

#include <string_view>

namespace pp {

PIPE_DEFINED long data_position::number() const {
  char* end = nullptr;
  long const n = std::strtol(text.c_str(), &end, 10);
  if (text != std::to_string(n) && !text.empty())
    detail::throw_error<data_error>(
        {"data position: expected a number, got '", std::string_view(text), "'"});
  return n;
}

}  // namespace pp
