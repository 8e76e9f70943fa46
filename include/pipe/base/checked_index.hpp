// SPDX-License-Identifier: BSL-1.0
//
// Bounds checks of indices that come from the caller.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::detail {

/// Throws Error: "<what> <index> is not in [0, <end>)". Out of line, so that the check inlines to a
/// compare and a branch.
template <class Error>
[[noreturn, gnu::cold]] PIPE_ONE_COPY void refuse_index(char const* what, int index, int end) {
  throw_error<Error>({what, " ", index, " is not in [0, ", end, ")"});
}
/// Returns `index` if it is in [0, end).
///
/// throws: Error, which names the index by `what`, otherwise
template <class Error>
constexpr int checked_index(char const* what, int index, int end) {
  if (index < 0 || index >= end) refuse_index<Error>(what, index, end);
  return index;
}

}  // namespace pp::detail
