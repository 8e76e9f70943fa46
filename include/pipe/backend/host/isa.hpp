// SPDX-License-Identifier: BSL-1.0
//
// Instruction sets. One binary serves every x86-64 machine: host kernels are compiled once for each
// set (kernels.hpp), and the best set that the processor has is chosen at run time, without an
// -march flag.
#pragma once

#include <cstddef>

namespace pp::host {

/// A count or a stride, in elements. Signed, so that loops and address arithmetic need no casts.
using extent = std::ptrdiff_t;

/// The instruction sets for which kernels are compiled, worst first. The kernels of a set are in a
/// namespace of the same name: pp::host::portable, avx2, avx512. Kernels for avx2 and avx512 exist
/// where __x86_64__ is defined. avx512_bf16, amx: the kernels of avx512, with products of BF16 by
/// an instruction of that extension (sliced_products.hpp), which has bits of its own;
/// emulated_avx512_bf16, emulated_amx: the same bits on a processor that has AVX-512 alone, slower
/// than avx512.
enum class isa { portable, avx2, avx512, emulated_avx512_bf16, emulated_amx, avx512_bf16, amx };

/// The set whose vectors the kernels of `set` have.
constexpr isa vectors_of(isa set) { return set > isa::avx512 ? isa::avx512 : set; }

/// Sizes of vectors, and of the largest register tile: as many sums as the registers hold beside
/// one row of B and one element of A. Two constants decide the bits of a set:
///
/// fuses:     a multiply-add is one instruction, rounded once
/// sum_bytes: bytes of all partial sums of a row together; a multiple of vector_bytes
///
/// law: sets with equal `fuses` and `sum_bytes` have the same bits, with every compiler
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

/// The width of the widest vector register of all sets, which workspaces and alignments are made
/// for.
inline constexpr std::size_t widest_vector_bytes = isa_traits<isa::avx512>::vector_bytes;

/// Results with more bytes do not stay in the last-level cache of most processors, so they are
/// streamed.
inline constexpr long cached_bytes = 24L << 20;

/// The set that every processor has that can run this program, by the compiler's target options.
constexpr isa least_isa() {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
  return isa::avx512;
#elif defined(__AVX2__) && defined(__FMA__)
  return isa::avx2;
#else
  return isa::portable;
#endif
}

/// `with`, a set with the vectors of AVX-512, if least_isa() has these vectors, else least_isa().
constexpr isa least_isa(isa with) { return least_isa() == isa::avx512 ? with : least_isa(); }

/// The best set that this processor (and its operating system) can run.
///
/// law: every feature in the set's target string in kernels.hpp is queried here.
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
/// Whether the processor has AVX-512-BF16, and all else that kernels for AVX-512 need.
inline bool has_avx512_bf16() {
#ifdef __x86_64__
  return best_isa() == isa::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}
/// Whether products of bfloat16 numbers by AVX-512-BF16 are faster than by multiply-adds of fp32:
/// on AMD's processors VDPBF16PS makes twice as many a second, on Intel's half as many.
inline bool has_fast_avx512_bf16() {
#ifdef __x86_64__
  return has_avx512_bf16() && __builtin_cpu_is("amd");
#else
  return false;
#endif
}
/// The best set for kernels without products of 16-bit numbers: with AVX-512, those of every set
/// have its vectors.
inline isa best_isa_for_vectors() {
  isa const best = best_isa();
  return best == isa::avx512 ? isa::amx : best;
}

}  // namespace pp::host
