// SPDX-License-Identifier: BSL-1.0
//
// Where lanes that branch apart come together: at the immediate post-dominator of the branch, the
// first instruction that every way from it to the kernel's end passes.
#pragma once

#include "program.hpp"

namespace ptx {

/// Sets the join of each branch of a kernel, whose targets are known.
///
/// source: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001, on blocks of
///         instructions in the order of their post-order from the end
void find_joins(kernel& k);

}  // namespace ptx
