// SPDX-License-Identifier: BSL-1.0
//
// The arithmetic of host kernels: the property of an instruction set that decides, beside the
// source, the bits of its kernels. The start of processes, checkpoints, logs of steps and runs_on()
// all take the name from here.
#pragma once

#include <string>

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/sliced_products.hpp>

namespace pp::host {

/// The x86-64 instruction set whose bits the kernels of `set` have: see isa_traits. The compiler
/// and its options change no bit.
constexpr isa bits_of(isa set) {
  using portable = isa_traits<isa::portable>;
  using avx2 = isa_traits<isa::avx2>;
  constexpr bool as_avx2 = portable::fuses == avx2::fuses && portable::sum_bytes == avx2::sum_bytes;
  if (set == isa::emulated_amx) return isa::amx;
  if (set == isa::emulated_avx512_bf16) return isa::avx512_bf16;
  return set == isa::portable && as_avx2 ? isa::avx2 : set;
}

/// The sets whose bits differ, worst first.
inline constexpr isa arithmetics[]{isa::portable, isa::avx2, isa::avx512, isa::avx512_bf16,
                                   isa::amx};

/// The name of a set: "AVX-512".
constexpr char const* name_of(isa set) {
  constexpr char const* names[]{"portable",
                                "AVX2",
                                "AVX-512",
                                "AVX-512 and emulated AVX-512-BF16",
                                "AVX-512 and emulated AMX",
                                "AVX-512 and AVX-512-BF16",
                                "AVX-512 and AMX"};
  return names[int(set)];
}
/// The arithmetic of the kernels of a set: the name of the set whose bits these kernels have.
///
/// law: kernels with equal names have equal bits, in any build
constexpr char const* arithmetic_of(isa set) { return name_of(bits_of(set)); }

/// The kernels of a set, and their arithmetic: "AVX-512", "portable, with the bits of AVX2". unit:
/// of products that no set decides, those of several slices.
[[gnu::cold]] inline std::string name_of_kernels(isa set,
                                                 product_unit unit = product_unit::vectors) {
  std::string text = name_of(set);
  if (bits_of(set) != set) text += std::string(", with the bits of ") + arithmetic_of(set);
  if (set == vectors_of(set) && unit != product_unit::vectors)
    text += unit == product_unit::amx ? ", products by AMX" : ", products by emulated AMX";
  return text;
}

}  // namespace pp::host
