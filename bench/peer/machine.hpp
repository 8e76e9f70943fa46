// SPDX-License-Identifier: BSL-1.0
//
// What a benchmark says about where its numbers are from.
#pragma once

#include <pipe/backend/host/isa.hpp>

namespace bench {

/// The instruction set that the host kernels use here.
inline char const* instruction_set() {
  char const* const sets[] = {"portable vectors", "AVX2", "AVX-512"};
  return sets[int(pp::host::best_isa())];
}

}  // namespace bench
