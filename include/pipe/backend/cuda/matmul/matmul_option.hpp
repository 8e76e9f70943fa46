// SPDX-License-Identifier: BSL-1.0
//
// The option of a Pipeline that chooses between cuBLASLt and the library's own kernels for matrix
// products on a GPU. The option changes the last bits of sums. If cuBLASLt is missing, or has no
// algorithm for a product, the library's own kernels run the product.
#pragma once

#include <concepts>

namespace pp {

namespace detail {

enum class product_policy : unsigned char { planned, own, cublaslt, timed, wgmma };

}  // namespace detail

/// Each product runs by cuBLASLt or by the library's own kernels, whichever the plan estimates to
/// be faster, from shape and format (default).
struct PlannedProducts {
  static constexpr auto products = detail::product_policy::planned;
};
/// No product runs by cuBLASLt: the bits do not depend on its version.
struct OwnProducts {
  static constexpr auto products = detail::product_policy::own;
};
/// Every product for which cuBLASLt has an algorithm runs by cuBLASLt.
struct CublasLtProducts {
  static constexpr auto products = detail::product_policy::cublaslt;
};
/// Each product runs by the faster of cuBLASLt and the library's own kernels, measured when a
/// trainer is constructed: bits may differ from machine to machine, and from one trainer to the
/// next.
struct TimedProducts {
  static constexpr auto products = detail::product_policy::timed;
};

/// Large products of 16-bit numbers run by the library's kernels for Hopper alone (TMA, wgmma), all
/// others by its kernels for every GPU. cuBLASLt is faster at most of these products, so the
/// kernels for Hopper are off without this option; with it, the program must be compiled for sm_90a
/// alone.
struct WgmmaProducts {
  static constexpr auto products = detail::product_policy::wgmma;
};

namespace detail {

template <class O>
concept product_option = requires {
  { O::products } -> std::same_as<product_policy const&>;
};

/// Whether a policy needs cuBLASLt, and so is refused on the host, where PlannedProducts and
/// OwnProducts have no effect.
constexpr bool needs_cublaslt(product_policy p) {
  return p == product_policy::cublaslt || p == product_policy::timed;
}
constexpr bool may_call_cublaslt(product_policy p) {
  return p != product_policy::own && p != product_policy::wgmma;
}

}  // namespace detail

}  // namespace pp
