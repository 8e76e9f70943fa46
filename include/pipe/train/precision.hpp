// SPDX-License-Identifier: BSL-1.0
//
// Precision policies: storage, product and accumulation types.
#pragma once

#include <concepts>

#include <pipe/base/constant.hpp>
#include <pipe/base/dtype.hpp>

namespace pp {

namespace detail {

/// How numbers are kept and multiplied. `element` is the type of parameters, their gradients,
/// optimizer state, inputs and outputs, and of statistics; `value` that of everything else that
/// layers hand on, keep for backward, or read of parameters, which then are copies; `product` is
/// what products of matrices multiply. Sums are never shorter than fp32.
template <class Element, class Value, dtype Product>
struct number_types {
  using element = Element;
  using value = Value;
  static constexpr dtype product = Product;
  static constexpr bool scales_loss = false;
};

}  // namespace detail

/// All in fp32 (default).
struct FP32 : detail::number_types<float, float, dtype::f32> {
  static constexpr char const* name = "fp32";
};
/// All in fp64, on the host: for gradient checks.
struct FP64 : detail::number_types<double, double, dtype::f64> {
  static constexpr char const* name = "fp64";
};
/// fp32 in memory; products round to 10 bits of mantissa what they multiply. On a GPU.
struct TF32 : detail::number_types<float, float, dtype::tf32> {
  static constexpr char const* name = "tf32";
};
/// Values of 16 bits with fp32's exponents; parameters, gradients and optimizer state stay fp32. On
/// a GPU.
struct BF16 : detail::number_types<float, bf16, dtype::bf16> {
  static constexpr char const* name = "bf16";
};
/// Values of 16 bits with 10 bits of mantissa and few exponents: the loss, and with it all
/// gradients, is scaled up by a factor that is adjusted while training. A step whose gradients
/// overflow is skipped. On a GPU.
///
/// source: Micikevicius et al., "Mixed precision training", 2018; the factor follows
///         torch.amp.GradScaler
struct FP16 : detail::number_types<float, fp16, dtype::f16> {
  static constexpr char const* name = "fp16";
  static constexpr bool scales_loss = true;
};

namespace detail {

/// Parameters and sums are of a type that the host computes with; what layers hand on is of the
/// same type or of 16 bits.
template <class P>
concept has_elements =
    std::same_as<typename P::element, float> || std::same_as<typename P::element, double>;
template <class P>
concept has_values = has_elements<P> && (std::same_as<typename P::value, typename P::element> ||
                                         std::same_as<typename P::value, bf16> ||
                                         std::same_as<typename P::value, fp16>);

/// All that a precision has, known to the compiler or not.
template <class P>
concept has_facts_of_precision = has_values<P> && requires {
  { P::name } -> std::convertible_to<char const*>;
  { P::product } -> std::convertible_to<dtype>;
  { P::scales_loss } -> std::convertible_to<bool>;
};

}  // namespace detail

/// A precision: its types, and its facts, which are constants.
template <class P>
concept precision_policy = detail::has_facts_of_precision<P> && requires {
  typename constants<is_read(P::name), is_read(P::product), is_read(P::scales_loss)>;
};

}  // namespace pp
