// SPDX-License-Identifier: BSL-1.0
//
// The product option of the CUDA backend: library kernels or cuBLASLt for matrix products.
#pragma once

#include <pipe/backend/cuda/matmul/matmul_option.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp::option_family {

/// The family of product options: every product_option. The backend checks whether it supports the
/// choice.
struct products : detail::any_family {
  using fallback = PlannedProducts;
  template <class O>
  static constexpr bool holds() {
    return detail::product_option<O>;
  }
};

}  // namespace pp::option_family
