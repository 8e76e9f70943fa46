// SPDX-License-Identifier: BSL-1.0
//
// Names of element types as plain values, for plans and messages; the types themselves where they are not built in.
#pragma once

#include <pipe/base/config.hpp>

namespace pp {

enum class dtype : unsigned char { f32, f64, i32 };

PIPE_HD constexpr int size_of(dtype t) { return t == dtype::f64 ? 8 : 4; }

constexpr char const* name_of(dtype t) { return t == dtype::f32 ? "fp32" : t == dtype::f64 ? "fp64" : "int32"; }

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

}  // namespace pp
