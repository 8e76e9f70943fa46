// SPDX-License-Identifier: BSL-1.0
//
// The number formats of tensor cores, converted by integer operations that give the same bits on
// the host and on the device.
#pragma once

#include <cstdint>

#include <pipe/base/config.hpp>
#include <pipe/base/half.hpp>
#include <pipe/base/math.hpp>

namespace pp::cuda {

/// Formats of the operands of a tensor core. Two bf16 or fp16 numbers share a register, the number
/// with the lower index in the lower half.
enum class operand_format : unsigned char { tf32, bf16, fp16 };

/// x rounded to the nearest tf32 (8 bits of exponent, 10 of mantissa, in the high bits of a
/// register), ties away from zero, as by cvt.rna.tf32.f32.
///
/// law: the low 13 bits are 0 (after the instruction alone they are undefined); a quiet NaN stays
///      NaN
PIPE_HD PIPE_INLINE unsigned to_tf32(float x) {
#ifdef __CUDA_ARCH__
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y & 0xffffe000u;
#else
  unsigned const bits = math::bits(x);
  bool const is_finite = (bits & 0x7f800000u) != 0x7f800000u;
  return (is_finite ? bits + 0x1000u : bits) & 0xffffe000u;
#endif
}

/// Element `half` of a register of a tile, as a float; tf32 has one element in a register.
template <operand_format F>
PIPE_HD PIPE_INLINE float operand_value(unsigned bits, int half) {
  if constexpr (F == operand_format::tf32)
    return math::from_bits(bits & 0xffffe000u);  // the bits that the hardware reads
  else if constexpr (F == operand_format::bf16)
    return detail::float_from_bf16(std::uint16_t(bits >> 16 * half));
  else
    return detail::float_from_f16(std::uint16_t(bits >> 16 * half));
}

}  // namespace pp::cuda
