// SPDX-License-Identifier: BSL-1.0
//
// The only macros of the library, eight: the version, and what differs between compilers. A user
// defines none of them. Functions that run once, or when something is wrong, are [[gnu::cold]]:
// made small, not fast, which also takes a compiler less time. The library's own tests define
// PIPE_SHOWS_WARNINGS: without it the headers that programs include, and through them all others,
// are system headers, so that a program may use any warnings and any global names.
#pragma once

/// 10000 major + 100 minor + patch: `#if PIPE_VERSION >= 200` is 0.2.0 or newer. CHANGELOG.md says
/// what a version promises.
#define PIPE_VERSION 100

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

/// Marks a function that CUDA device code may call as well as the host.
#ifdef __CUDACC__
#define PIPE_HD __host__ __device__
#else
#define PIPE_HD
#endif

/// Inlined wherever it is called, and so compiled for its caller's instruction set: a copy of its
/// own would be for the least one, slower and without fused multiply-adds, and its bits would
/// depend on whether there was a copy.
#ifdef __CUDACC__
#define PIPE_INLINE __forceinline__
#else
#define PIPE_INLINE inline __attribute__((always_inline))
#endif

/// The loop that follows is unrolled in device code: its index is then a constant, and arrays that
/// it indexes are registers.
#ifdef __CUDA_ARCH__
#define PIPE_UNROLL _Pragma("unroll")
#else
#define PIPE_UNROLL
#endif

/// Compiled once, never inlined or specialised: its scalar loops may be vectorised or not,
/// contracted or not, but always alike.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define PIPE_ONE_COPY __attribute__((noinline, noclone))
#else
#define PIPE_ONE_COPY __attribute__((noinline))
#endif

/// The loop that follows touches no memory through two names in a way that matters: it may be
/// vectorised without checks.
#if defined(__clang__)
#define PIPE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__CUDA_ARCH__)
#define PIPE_INDEPENDENT _Pragma("GCC ivdep")
#else
#define PIPE_INDEPENDENT
#endif

/// What stands between these is optimised though the program is not (-O0, where g++ defines no
/// __OPTIMIZE__): kernels, and what runs them. At other levels, under sanitizers and in other
/// compilers, which have no such thing, they are nothing.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__) && !defined(__OPTIMIZE__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PIPE_OPTIMIZED_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"O2\")")
#define PIPE_OPTIMIZED_END _Pragma("GCC pop_options")
#else
#define PIPE_OPTIMIZED_BEGIN
#define PIPE_OPTIMIZED_END
#endif
