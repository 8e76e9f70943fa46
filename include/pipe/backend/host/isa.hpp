// SPDX-License-Identifier: BSL-1.0
//
// One binary serves every x86-64 machine: the host kernels are compiled once per instruction set
// (kernels.hpp) and the best set the processor has is chosen here, at run time. A user passes no
// -march flag.
#pragma once

#include <cstddef>

/// 1 where the avx2 and avx512 regions of kernels.hpp are compiled as well as the portable one.
#if defined(__x86_64__)
#define PIPE_HOST_HAS_AVX 1
#else
#define PIPE_HOST_HAS_AVX 0
#endif

namespace pp::host {

/// A count or a stride, in elements. Signed, so that loops and address arithmetic need no casts.
using extent = std::ptrdiff_t;

/// The instruction sets a kernel exists for, worst first. Each names a namespace:
/// pp::host::portable, avx2, avx512.
enum class isa { portable, avx2, avx512 };

/// Vector registers are never wider than this on any set: what workspace formulas and alignments
/// assume.
inline constexpr std::size_t widest_vector_bytes = 64;

/// What was written this many bytes ago is in no cache of most processors, or will not be for long.
inline constexpr long cached_bytes = 24L << 20;

/// The best set that this processor (and its operating system) can run.
///
/// law: every feature that the region's target string in kernels.hpp names is asked for here.
inline isa best_isa() {
#if PIPE_HOST_HAS_AVX
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
