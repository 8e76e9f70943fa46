// SPDX-License-Identifier: BSL-1.0
//
// Which of a pipeline's matrix products run on a GPU by cuBLASLt, and which by our own kernels, as an option of a Pipeline. It changes sums
// in their last bits. Where cuBLASLt is not there, or cannot do a product, our own kernels do it.
#pragma once

#include <concepts>

namespace pp {

enum class product_policy : unsigned char { planned, own, cublaslt, timed };

/// As the plan estimates it, by each product's shape and format (default).
struct PlannedProducts {
  static constexpr auto products = product_policy::planned;
};
/// None: the bits do not depend on a library's version.
struct OwnProducts {
  static constexpr auto products = product_policy::own;
};
/// All that it can do.
struct CublasLtProducts {
  static constexpr auto products = product_policy::cublaslt;
};
/// Each as is faster, measured when a trainer is made: bits may differ from machine to machine, and from one trainer to the next.
struct TimedProducts {
  static constexpr auto products = product_policy::timed;
};

template <class O>
concept product_option = requires {
  { O::products } -> std::same_as<product_policy const&>;
};

/// Whether a policy makes sense on a GPU only. A plan, and our own kernels, are what a host has anyway.
constexpr bool needs_cublaslt(product_policy p) { return p == product_policy::cublaslt || p == product_policy::timed; }

}  // namespace pp
