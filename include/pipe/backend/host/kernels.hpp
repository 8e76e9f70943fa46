// SPDX-License-Identifier: BSL-1.0
//
// The host kernels, once for each instruction set. Around each namespace below the compiler's
// target is switched; the namespace includes the same sources (per_isa/compile.inl), whose
// templates keep the target wherever they are instantiated. A new kernel is a specialisation of
// kernel_of in per_isa/; a new instruction set is a namespace here and its traits in isa.hpp.
#pragma once

// All headers that per_isa/ uses must be included here. An inline function of the standard library
// that was first defined under a target pragma would be compiled for that target, and the linker
// could take this copy for the whole program.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <pipe/backend/dispatch.hpp>
#include <pipe/backend/host/arguments.hpp>
#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/attention_backward.hpp>
#include <pipe/backend/host/attention_forward.hpp>
#include <pipe/backend/host/batch_norm_loops.hpp>
#include <pipe/backend/host/contraction.hpp>
#include <pipe/backend/host/contraction_loops.hpp>
#include <pipe/backend/host/convolution.hpp>
#include <pipe/backend/host/convolution_loops.hpp>
#include <pipe/backend/host/facts.hpp>
#include <pipe/backend/host/group_products.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/kernel_source.hpp>
#include <pipe/backend/host/narrow_matrix.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/row_kernels.hpp>
#include <pipe/backend/host/sliced_loops.hpp>
#include <pipe/backend/host/sliced_products.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/backend/host/transpose.hpp>
#include <pipe/backend/host/values.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/custom.hpp>
#include <pipe/base/half.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/loss_labels.hpp>
#include <pipe/graph/slope_formula.hpp>
#include <pipe/passes/group.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wpsabi"  // vectors are passed to inlined functions and within one instruction set only
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

// On x86-64 only processors older than AVX2 run the portable set, so g++ compiles this set with
// fewer optimisations: a model of 12 blocks compiles in a twelfth less time, and the set is 2 %
// slower.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#if defined(__x86_64__) && !defined(__FMA__) && !defined(__CUDACC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&  \
    !defined(PIPE_DEBUG_KERNELS)
#pragma GCC optimize("O1", "tree-vectorize")
#endif
#endif
namespace pp::host::portable {
using this_isa = isa_traits<isa::portable>;
namespace per_isa = portable;
#include <pipe/backend/host/per_isa/compile.inl>
}  // namespace pp::host::portable
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#ifdef __x86_64__

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#pragma GCC optimize("fp-contract=off")
#endif
namespace pp::host::avx2 {
using this_isa = isa_traits<isa::avx2>;
namespace per_isa = avx2;
#include <pipe/backend/host/per_isa/compile.inl>
}  // namespace pp::host::avx2
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
#pragma GCC optimize("fp-contract=off")
#endif
namespace pp::host::avx512 {
using this_isa = isa_traits<isa::avx512>;
namespace per_isa = avx512;
#include <pipe/backend/host/per_isa/compile.inl>
}  // namespace pp::host::avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__

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
