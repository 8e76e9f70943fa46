// SPDX-License-Identifier: BSL-1.0
//
// In what numbers a pipeline computes: an option.
#pragma once

#include <pipe/base/dtype.hpp>
#include <pipe/train/option_family.hpp>

namespace pp {

/// How numbers are kept and multiplied. `element` is the type of parameters, their gradients,
/// optimizer state, inputs and outputs, and of statistics; `value` that of everything else that
/// layers hand on, keep for backward, or read of parameters, which then are copies; `product` is
/// what products of matrices multiply. Sums are never shorter than fp32.
template <class Element, class Value, dtype Product>
struct number_types {
  static constexpr auto family = option_family::precision;
  using element = Element;
  using value = Value;
  static constexpr dtype product = Product;
  static constexpr bool scales_loss = false;
};
/// All in fp32 (default).
struct FP32 : number_types<float, float, dtype::f32> {
  static constexpr char const* name = "fp32";
};
/// All in fp64, on the host: for gradient checks.
struct FP64 : number_types<double, double, dtype::f64> {
  static constexpr char const* name = "fp64";
};
/// fp32 in memory; products round to 10 bits of mantissa what they multiply. On a GPU.
struct TF32 : number_types<float, float, dtype::tf32> {
  static constexpr char const* name = "tf32";
};
/// Values of 16 bits with fp32's exponents; parameters, gradients and optimizer state stay fp32. On
/// a GPU.
struct BF16 : number_types<float, bf16, dtype::bf16> {
  static constexpr char const* name = "bf16";
};
/// Values of 16 bits with 10 bits of mantissa and few exponents: the loss, and with it all
/// gradients, is scaled up by a factor that is adjusted while training. A step whose gradients
/// overflow is skipped. On a GPU.
///
/// source: Micikevicius et al., "Mixed precision training", 2018; the factor follows
///         torch.amp.GradScaler
struct FP16 : number_types<float, fp16, dtype::f16> {
  static constexpr char const* name = "fp16";
  static constexpr bool scales_loss = true;
};

}  // namespace pp
