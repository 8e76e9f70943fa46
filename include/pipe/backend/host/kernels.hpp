// SPDX-License-Identifier: BSL-1.0
//
// The host kernels, once per instruction set. Each region below switches the compiler's target,
// names itself PIPE_ISA and includes the same sources (region/families.inl), whose templates keep
// that target wherever they are instantiated. A new kernel family is one line in families.inl; a
// new instruction set is one region here and one line in isa.hpp.
#pragma once

// Everything the regions use must be included here, before the first region: an inline function of
// the standard library that was first defined inside a region would be compiled for its target and
// picked by the linker for the whole program.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <pipe/backend/host/arguments.hpp>
#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/attention_backward.hpp>
#include <pipe/backend/host/attention_forward.hpp>
#include <pipe/backend/host/contraction.hpp>
#include <pipe/backend/host/contraction_loops.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/kernel_source.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/row_kernels.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/backend/host/transpose.hpp>
#include <pipe/backend/host/weight_gradient.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/custom.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/passes/group.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wpsabi"  // vector arguments never leave a region: all such functions are inlined
#endif
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored \
    "-Wpass-failed"  // in double, loops over the C library's functions stay scalar
#endif
#ifdef __CUDACC__  // `#pragma GCC unroll` is unknown to cudafe++ but reaches the host compiler
#pragma nv_diag_suppress 1675
#endif

PIPE_OPTIMIZED_BEGIN

#define PIPE_ISA portable
#define PIPE_VECTOR_BYTES 16
#define PIPE_TILE_ROWS 4
#define PIPE_TILE_VECTORS 2
#include <pipe/backend/host/region/families.inl>
#undef PIPE_ISA
#undef PIPE_VECTOR_BYTES
#undef PIPE_TILE_ROWS
#undef PIPE_TILE_VECTORS

#if PIPE_HOST_HAS_AVX

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define PIPE_ISA avx2
#define PIPE_VECTOR_BYTES 32
#define PIPE_TILE_ROWS 4
#define PIPE_TILE_VECTORS 3
#include <pipe/backend/host/region/families.inl>
#undef PIPE_ISA
#undef PIPE_VECTOR_BYTES
#undef PIPE_TILE_ROWS
#undef PIPE_TILE_VECTORS
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma,avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma,avx2,prefer-vector-width=512")
#endif
#define PIPE_ISA avx512
#define PIPE_VECTOR_BYTES 64
#define PIPE_TILE_ROWS 8
#define PIPE_TILE_VECTORS 3
#include <pipe/backend/host/region/families.inl>
#undef PIPE_ISA
#undef PIPE_VECTOR_BYTES
#undef PIPE_TILE_ROWS
#undef PIPE_TILE_VECTORS
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // PIPE_HOST_HAS_AVX

PIPE_OPTIMIZED_END

#ifdef __CUDACC__
#pragma nv_diag_default 1675
#endif
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
