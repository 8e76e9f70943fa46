// SPDX-License-Identifier: BSL-1.0
//
// Instruction sets. One binary serves every x86-64 machine: the host kernels are compiled once per
// set (kernels.hpp), and the best set that the processor has is chosen at run time. No -march flag
// is needed.
#pragma once

#include <cstddef>

namespace pp::host {

/// A count or a stride, in elements. Signed, so that loops and address arithmetic need no casts.
using extent = std::ptrdiff_t;

/// The instruction sets a kernel exists for, worst first. Each names a namespace:
/// pp::host::portable, avx2, avx512. Kernels for the latter two exist where __x86_64__ is defined.
enum class isa { portable, avx2, avx512 };

/// Sizes of vectors, and of the largest register tile: as many sums as the registers hold beside
/// one row of B and one element of A. What decides the bits of a set:
///
/// fuses:     multiply-adds are one instruction, and rounded once
/// sum_bytes: a row is added up in partial sums of this many bytes together; a multiple of
///            vector_bytes
///
/// law: sets that agree in both have the same bits, by every compiler
template <isa Set>
struct isa_traits;
template <>
struct isa_traits<isa::portable> {
  static constexpr int vector_bytes = 16, tile_rows = 4, tile_vectors = 2;
#ifdef __aarch64__  // the bits of AVX2
  static constexpr bool fuses = true;
  static constexpr int sum_bytes = 32;
#else
  static constexpr bool fuses = false;
  static constexpr int sum_bytes = 16;
#endif
};
template <>
struct isa_traits<isa::avx2> {
  static constexpr int vector_bytes = 32, tile_rows = 4, tile_vectors = 3;
  static constexpr bool fuses = true;
  static constexpr int sum_bytes = 32;
};
template <>
struct isa_traits<isa::avx512> {
  static constexpr int vector_bytes = 64, tile_rows = 8, tile_vectors = 3;
  static constexpr bool fuses = true;
  static constexpr int sum_bytes = 64;
};

/// Vector registers are never wider than this on any set: what workspace formulas and alignments
/// assume.
inline constexpr std::size_t widest_vector_bytes = isa_traits<isa::avx512>::vector_bytes;

/// Results larger than this do not stay in the last-level cache of most processors: they are
/// streamed.
inline constexpr long cached_bytes = 24L << 20;

/// The set that every processor has which can run this program: what the compiler was told.
constexpr isa least_isa() {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
  return isa::avx512;
#elif defined(__AVX2__) && defined(__FMA__)
  return isa::avx2;
#else
  return isa::portable;
#endif
}

/// The best set that this processor (and its operating system) can run.
///
/// law: every feature of the set's target string in kernels.hpp is asked for here.
inline isa best_isa() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
      return isa::avx512;
    return isa::avx2;
  }
#endif
  return isa::portable;
}

}  // namespace pp::host
