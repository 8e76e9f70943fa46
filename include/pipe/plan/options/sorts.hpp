// SPDX-License-Identifier: BSL-1.0
//
// The sort option of the CUDA backend: library kernels or CUB for the ids of an embedding's rows.
#pragma once

#include <pipe/backend/cuda/rows/sort_option.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp::option_family {

/// The family of sort options: every sort_option.
struct sorts : detail::any_family {
  using fallback = OwnSort;
  template <class O>
  static constexpr bool holds() {
    return detail::sort_option<O>;
  }
};

}  // namespace pp::option_family
