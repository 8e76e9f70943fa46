// SPDX-License-Identifier: BSL-1.0
//
// Element types as plain values, for plans and messages, and the map from C++ types to them.
#pragma once

#include <pipe/base/half.hpp>

namespace pp {

/// The types in which numbers are stored and multiplied.
enum class dtype : unsigned char {
  f32,
  f64,
  bf16,
  f16,
  tf32,    ///< multiplication only: fp32 operands rounded by tensor cores; stored as f32
  bf16x3,  ///< multiplication only: fp32 operands as sums of three bfloat16 numbers; stored as f32
};

/// Bytes per number in memory; tf32 is stored in 4.
constexpr int size_of(dtype t) {
  return t == dtype::f64 ? 8 : t == dtype::bf16 || t == dtype::f16 ? 2 : 4;
}

namespace detail {

/// The dtype of a C++ element type: float, double, bf16 or fp16.
template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of<double> {
  static constexpr dtype value = dtype::f64;
};
template <>
struct dtype_of<bf16> {
  static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_of<fp16> {
  static constexpr dtype value = dtype::f16;
};

}  // namespace detail

}  // namespace pp
