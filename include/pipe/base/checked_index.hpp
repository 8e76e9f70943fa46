// SPDX-License-Identifier: BSL-1.0
//
// An index that a program gives, before anything is read by it.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp {

template <class Error>
[[noreturn, gnu::cold]] PIPE_ONE_COPY void refuse_index(char const* what, int index, int end) {
  complain<Error>({what, " ", index, " is not in [0, ", end, ")"});
}
/// The index. Throws Error, with `what` it is of, unless it is in [0, end).
template <class Error>
constexpr int checked_index(char const* what, int index, int end) {
  if (index < 0 || index >= end) refuse_index<Error>(what, index, end);
  return index;
}

}  // namespace pp
