// SPDX-License-Identifier: BSL-1.0
//
// The library's only macros, nine: the version, and differences between compilers. A user defines
// none of them. Functions that run once, or only on errors, are [[gnu::cold]]: optimised for size,
// which also takes less compile time. The library's own tests define PIPE_SHOWS_WARNINGS; without
// it the headers that programs include, and all others through them, are system headers, so that a
// program may use any warnings and any global names.
#pragma once

/// 10000 major + 100 minor + patch: `#if PIPE_VERSION >= 200` means 0.2.0 or newer. CHANGELOG.md
/// says what a version promises.
#define PIPE_VERSION 200

#if !defined(_MSVC_LANG) && __cplusplus < 202002L
#error "pipe needs C++20: compile with -std=c++20"
#include <nothing after the error above is compiled>  // a file that is missing ends the compilation
#endif
#if !defined(__cpp_exceptions)
#error "pipe needs exceptions: compile without -fno-exceptions"
#include <nothing after the error above is compiled>
#endif
#if defined(__FAST_MATH__) || __FINITE_MATH_ONLY__ || defined(__ASSOCIATIVE_MATH__) || \
    defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "pipe needs IEEE arithmetic: compile without -ffast-math, -Ofast and their parts"
#endif
#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1204
#error "pipe needs CUDA 12.4 or newer"
#endif

// Words of this library that are macros after <term.h> of ncurses, a header of netfilter, Xlibint.h
// or windows.h: they end here, as min and max do in libstdc++.
#undef bytes
#undef columns
#undef lines
#undef max
#undef min

/// Marks a function that is callable from host and CUDA device code.
#ifdef __CUDACC__
#define PIPE_HD __host__ __device__
#else
#define PIPE_HD
#endif

/// Always inlined, and so compiled for the instruction set of its caller. An out-of-line copy would
/// be compiled for the baseline instruction set: slower, without fused multiply-adds, and with bits
/// that depend on whether the compiler chose to inline.
#ifdef __CUDACC__
#define PIPE_INLINE __forceinline__
#else
#define PIPE_INLINE inline __attribute__((always_inline))
#endif

/// Before each definition in the .inl file of a header: of a function that knows no model. Such a
/// definition is `inline`, but external in the source of the library pipe::compiled. Programs with
/// that library define PIPE_COMPILED as `extern`; they do not have this macro, and do not read the
/// .inl files.
#if !defined(PIPE_COMPILED) || defined(__CUDACC__)
#define PIPE_DEFINED inline
#elif 0 - PIPE_COMPILED - 1 > 0  // 0 - - 1: it is defined as nothing; `extern` counts as 0
#define PIPE_DEFINED
#endif

/// Unrolls the loop that follows in device code: its index becomes a constant, so arrays that it
/// indexes stay in registers.
#ifdef __CUDA_ARCH__
#define PIPE_UNROLL _Pragma("unroll")
#else
#define PIPE_UNROLL
#endif

/// Compiled exactly once, never inlined or cloned: however the compiler vectorises or contracts its
/// scalar loops, every caller gets the same bits.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define PIPE_ONE_COPY __attribute__((noinline, noclone))
#else
#define PIPE_ONE_COPY __attribute__((noinline))
#endif

/// Asserts that the iterations of the loop that follows are independent: it may be vectorised
/// without alias checks.
#if defined(__clang__)
#define PIPE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__CUDA_ARCH__)
#define PIPE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PIPE_INDEPENDENT
#endif

/// Around all code that computes numbers of a step. What is written there as a product and a sum is
/// rounded twice: compilers that contract, as g++ does by default, choose by optimisation level and
/// target where. (One rounding is written as math::multiply_add.) Nothing is asked of g++ where the
/// target has no instruction to contract to: functions under such a pragma compile slower.
/// host/kernels.hpp switches the target, and asks there. In a program compiled with g++
/// -O0, where __OPTIMIZE__ is not defined, the code is optimised, too; not under sanitizers, in
/// other compilers, which have no such pragma, and where PIPE_DEBUG_KERNELS is defined: for a
/// debugger, or for tests that shall compile fast.
#if defined(__clang__)
#define PIPE_OPTIMIZED_BEGIN _Pragma("float_control(push)") _Pragma("clang fp contract(off)")
#define PIPE_OPTIMIZED_END _Pragma("float_control(pop)")
#elif defined(__GNUC__) && !defined(__CUDACC__) && !defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&       \
    !defined(PIPE_DEBUG_KERNELS)
#define PIPE_OPTIMIZED_BEGIN \
  _Pragma("GCC push_options") _Pragma("GCC optimize(\"O2\", \"fp-contract=off\")")
#define PIPE_OPTIMIZED_END _Pragma("GCC pop_options")
#elif defined(__CUDA_ARCH__) || !defined(__GNUC__) || \
    (defined(__x86_64__) && !defined(__FMA__) && !defined(__FMA4__) && !defined(__AVX512F__))
#define PIPE_OPTIMIZED_BEGIN
#define PIPE_OPTIMIZED_END
#elif defined(__CUDACC__)  // nvcc hands them on, and warns of one
#define PIPE_OPTIMIZED_BEGIN                                                                 \
  _Pragma("GCC push_options") _Pragma("nv_diagnostic push") _Pragma("nv_diag_suppress 1675") \
      _Pragma("GCC optimize(\"fp-contract=off\")") _Pragma("nv_diagnostic pop")
#define PIPE_OPTIMIZED_END _Pragma("GCC pop_options")
#else
#define PIPE_OPTIMIZED_BEGIN \
  _Pragma("GCC push_options") _Pragma("GCC optimize(\"fp-contract=off\")")
#define PIPE_OPTIMIZED_END _Pragma("GCC pop_options")
#endif
