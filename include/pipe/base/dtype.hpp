// SPDX-License-Identifier: BSL-1.0
//
// Names of element types as plain values, for plans and messages; the types themselves where they
// are not built in.
#pragma once

#include <pipe/base/half.hpp>

namespace pp {

/// Types in which numbers are stored and multiplied.
enum class dtype : unsigned char {
  f32,
  f64,
  bf16,
  f16,
  tf32,  ///< what tensor cores make of fp32 numbers: in memory it is none
};

/// Bytes of a number in memory.
constexpr int size_of(dtype t) {
  return t == dtype::f64 ? 8 : t == dtype::bf16 || t == dtype::f16 ? 2 : 4;
}

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

}  // namespace pp
