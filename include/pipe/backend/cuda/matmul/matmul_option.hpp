// SPDX-License-Identifier: BSL-1.0
//
// The option of a Pipeline that chooses between cuBLASLt and our own kernels for its matrix
// products on a GPU. It changes sums in their last bits. Where cuBLASLt is not there, or cannot do
// a product, our own kernels do it.
#pragma once

#include <concepts>

namespace pp {

namespace detail {

enum class product_policy : unsigned char { planned, own, cublaslt, timed, wgmma };

}  // namespace detail

/// Each product runs by cuBLASLt or by our kernels as the plan estimates it from shape and format
/// (default).
struct PlannedProducts {
  static constexpr auto products = detail::product_policy::planned;
};
/// No product runs by cuBLASLt: the bits do not depend on a library's version.
struct OwnProducts {
  static constexpr auto products = detail::product_policy::own;
};
/// Every product that cuBLASLt can do runs by it.
struct CublasLtProducts {
  static constexpr auto products = detail::product_policy::cublaslt;
};
/// Each product runs by what is faster, measured when a trainer is made: bits may differ from
/// machine to machine, and from one trainer to the next.
struct TimedProducts {
  static constexpr auto products = detail::product_policy::timed;
};

/// Large products of 16-bit numbers run by kernels of Hopper alone (TMA, wgmma), all others by our
/// own for every GPU. cuBLASLt is faster at most of them, so they are off unless this option asks
/// for them; the program is compiled for sm_90a alone.
struct WgmmaProducts {
  static constexpr auto products = detail::product_policy::wgmma;
};

namespace detail {

template <class O>
concept product_option = requires {
  { O::products } -> std::same_as<product_policy const&>;
};

/// Whether a policy makes sense on a GPU only. A plan, and our own kernels, are what a host has
/// anyway.
constexpr bool needs_cublaslt(product_policy p) {
  return p == product_policy::cublaslt || p == product_policy::timed;
}
constexpr bool may_call_cublaslt(product_policy p) {
  return p != product_policy::own && p != product_policy::wgmma;
}

}  // namespace detail

}  // namespace pp
