// SPDX-License-Identifier: BSL-1.0
//
// Calls of the operating system that a signal's handler interrupts: EINTR says that nothing has
// happened yet.
#pragma once

#include <cerrno>

namespace pp::detail {

/// Makes a call of the system until no signal interrupts it. Returns what it has returned; errno
/// has the reason of a failure, which is not EINTR.
///
/// needs: a call that has no effect when it fails with EINTR: not close(), nor connect()
template <class Call>
auto uninterrupted(Call const& call) {
  for (;;)
    if (auto const result = call(); result >= 0 || errno != EINTR) return result;
}

}  // namespace pp::detail
