// SPDX-License-Identifier: BSL-1.0
//
// Precision policies: storage, product and accumulation types.
#pragma once

#include <concepts>

#include <pipe/base/constant.hpp>
#include <pipe/base/dtype.hpp>

namespace pp {

namespace detail {

/// The number types of a precision. `element`: parameters, gradients, optimizer state, inputs,
/// outputs and statistics. `value`: activations and their gradients, and the copies of parameters
/// that kernels read. `product`: operands of matrix products. Sums are accumulated in fp32 or
/// wider.
template <class Element, class Value, dtype Product>
struct number_types {
  using element = Element;
  using value = Value;
  static constexpr dtype product = Product;
  static constexpr bool scales_loss = false;
};

}  // namespace detail

/// Storage and products in fp32 (default).
struct FP32 : detail::number_types<float, float, dtype::f32> {
  static constexpr char const* name = "fp32";
};
/// Storage and products in fp64, for gradient checks. On the host.
struct FP64 : detail::number_types<double, double, dtype::f64> {
  static constexpr char const* name = "fp64";
};
/// fp32 in memory; operands of matrix products are rounded to 10 bits of mantissa on a GPU, to 16
/// bits on the host, where they are sums of two bfloat16 numbers.
struct TF32 : detail::number_types<float, float, dtype::tf32> {
  static constexpr char const* name = "tf32";
};
/// fp32 in memory; operands of matrix products are sums of three bfloat16 numbers, which hold all
/// 24 bits, and are multiplied as six products of bfloat16 numbers, for processors with AMX; others
/// emulate AMX, which is slower than FP32. On the host.
///
/// law: the error of a product of random numbers is not above that of a chain of fp32
/// multiply-adds.
///      Infinities and NaN are those of fp32. Numbers below 2^-126 count as zero in every sum: a
///      product of a and b of length k may be off by a further 2^-125 times the sum of |a| + |b|,
///      plus k 2^-123.
struct SplitFP32 : detail::number_types<float, float, dtype::bf16x3> {
  static constexpr char const* name = "fp32 in three bf16 slices";
};
/// Activations in bfloat16: 16 bits with fp32's range of exponents. Parameters, gradients and
/// optimizer state stay in fp32.
struct BF16 : detail::number_types<float, bf16, dtype::bf16> {
  static constexpr char const* name = "bf16";
};
/// Activations in fp16: 10 bits of mantissa, but few exponents, so the loss, and with it all
/// gradients, is scaled by a factor that is adjusted during training. A step whose gradients
/// overflow is skipped. On a GPU.
///
/// source: Micikevicius et al., "Mixed precision training", 2018; the factor follows
///         torch.amp.GradScaler
struct FP16 : detail::number_types<float, fp16, dtype::f16> {
  static constexpr char const* name = "fp16";
  static constexpr bool scales_loss = true;
};

namespace detail {

/// `element` is a type that the host computes with; `value` is the same or a 16-bit type.
template <class P>
concept has_elements =
    std::same_as<typename P::element, float> || std::same_as<typename P::element, double>;
template <class P>
concept has_values = has_elements<P> && (std::same_as<typename P::value, typename P::element> ||
                                         std::same_as<typename P::value, bf16> ||
                                         std::same_as<typename P::value, fp16>);

/// Has all members of a precision, constant or not.
template <class P>
concept has_facts_of_precision = has_values<P> && requires {
  { P::name } -> std::convertible_to<char const*>;
  { P::product } -> std::convertible_to<dtype>;
  { P::scales_loss } -> std::convertible_to<bool>;
};

}  // namespace detail

namespace custom {

/// A precision policy: number types, and constants `name`, `product` and `scales_loss`.
template <class P>
concept precision_policy = detail::has_facts_of_precision<P> && requires {
  typename detail::constants<detail::is_read(P::name), detail::is_read(P::product),
                             detail::is_read(P::scales_loss)>;
};

}  // namespace custom

}  // namespace pp
