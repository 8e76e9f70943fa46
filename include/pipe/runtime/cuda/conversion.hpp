// SPDX-License-Identifier: BSL-1.0
//
// Conversion between the caller's arrays, which are float, and the arrays of a device, which may be
// 16-bit.
#pragma once

#include <cstring>

#include <pipe/base/dtype.hpp>

namespace pp::detail {

/// to[i] = from[i] for i < count, one type to another; arrays may not overlap.
template <class To, class From>
void convert(void* to, void const* from, long count) {
  for (long i = 0; i < count; ++i) static_cast<To*>(to)[i] = To(static_cast<From const*>(from)[i]);
}

/// to[i] = from[i] for i < count, rounded to the nearest value of `type`; from[] is float.
inline void convert_from_float(dtype type, void* to, void const* from, long count) {
  if (type == dtype::bf16)
    detail::convert<bf16, float>(to, from, count);
  else if (type == dtype::f16)
    detail::convert<fp16, float>(to, from, count);
  else
    std::memcpy(to, from, sizeof(float) * std::size_t(count));
}
/// to[i] = from[i] for i < count; to[] is float.
///
/// law: exact
inline void convert_to_float(dtype type, void* to, void const* from, long count) {
  if (type == dtype::bf16)
    detail::convert<float, bf16>(to, from, count);
  else if (type == dtype::f16)
    detail::convert<float, fp16>(to, from, count);
  else
    std::memcpy(to, from, sizeof(float) * std::size_t(count));
}

}  // namespace pp::detail
