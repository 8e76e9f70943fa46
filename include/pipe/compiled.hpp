// SPDX-License-Identifier: BSL-1.0
//
// The templates that the target pipe::compiled compiles once: what programs of any model call in
// single precision, and no model is part of. The target defines PIPE_COMPILED: as `extern` for
// programs, which only declare these templates, and as nothing for the library's own source.
// Without the target, and for nvcc, there is nothing here. The library also has the functions of
// .inl files (see PIPE_DEFINED), and templates of files, which their headers list at their ends.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/backend/host/kernels.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/metrics/accuracy.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/sgd.hpp>
#include <pipe/runtime/host/core/executor.hpp>
#include <pipe/transport/in_process/in_process.hpp>

#if defined(PIPE_COMPILED) && !defined(__CUDACC__)
#ifdef PIPE_DEFINED
#include <pipe/compiled.inl>
#endif
namespace pp::host {

PIPE_COMPILED template decltype(multiply<float>) multiply<float>;
PIPE_COMPILED template decltype(multiply_transposed<float>) multiply_transposed<float>;
PIPE_COMPILED template decltype(sum_columns<float>) sum_columns<float>;
PIPE_COMPILED template void contract_tiles<float>(tile_set<float> const&, product_shape const&,
                                                  strided<float const>, float const*, extent,
                                                  contraction_ends<float> const&, void*);
PIPE_COMPILED template decltype(contract_values<float>) contract_values<float>;
PIPE_COMPILED template decltype(transpose_squares<float>) transpose_squares<float>;
PIPE_COMPILED template decltype(transpose_to_panels<float>) transpose_to_panels<float>;
PIPE_COMPILED template decltype(attention_forward<float>) attention_forward<float>;
PIPE_COMPILED template decltype(attention_backward<float>) attention_backward<float>;
PIPE_COMPILED template decltype(convolve<float>) convolve<float>;
PIPE_COMPILED template decltype(convolve_weights<float>) convolve_weights<float>;
PIPE_COMPILED template decltype(batch_statistics<float>) batch_statistics<float>;
PIPE_COMPILED template decltype(batch_norm<float>) batch_norm<float>;
PIPE_COMPILED template decltype(batch_sums<float>) batch_sums<float>;
PIPE_COMPILED template decltype(batch_norm_gradient<float>) batch_norm_gradient<float>;

}  // namespace pp::host
namespace pp::host::portable {
#include <pipe/backend/host/per_isa/compiled.inl>
}  // namespace pp::host::portable
#ifdef __x86_64__
namespace pp::host::avx2 {
#include <pipe/backend/host/per_isa/compiled.inl>
}  // namespace pp::host::avx2
namespace pp::host::avx512 {
#include <pipe/backend/host/per_isa/compiled.inl>
}  // namespace pp::host::avx512
#endif
namespace pp::detail {

PIPE_COMPILED template class executor<float, in_process>;
PIPE_COMPILED template decltype(throw_error<error>) throw_error<error>;
PIPE_COMPILED template decltype(throw_error<data_error>) throw_error<data_error>;
PIPE_COMPILED template decltype(throw_error<not_finite>) throw_error<not_finite>;
PIPE_COMPILED template decltype(check_weights<float>) check_weights<float>;
PIPE_COMPILED template decltype(accuracy_of<float>) accuracy_of<float>;

// Options that a program and the library must share, in the name of a symbol: a program with others
// does not link, and the linker's message has the program's. All further options either change no
// bit of a result and no layout of a type, or base/config.hpp refuses them.
#ifdef PIPE_DEBUG_KERNELS
using compiled_kernels = struct debug_kernels;
#else
using compiled_kernels = struct optimized_kernels;
#endif
#if defined(__SANITIZE_ADDRESS__)
using compiled_sanitizer = struct address_sanitizer;
#elif defined(__SANITIZE_THREAD__)
using compiled_sanitizer = struct thread_sanitizer;
#else
using compiled_sanitizer = struct no_sanitizer;
#endif
#ifdef _GLIBCXX_DEBUG
using compiled_containers = struct debug_containers;
#else
using compiled_containers = struct usual_containers;
#endif
template <int Version, class Kernels, class Sanitizer, class Containers>
struct compiled_library {
  static char is_linked;
};
template <int Version, class Kernels, class Sanitizer, class Containers>
char compiled_library<Version, Kernels, Sanitizer, Containers>::is_linked = 0;
PIPE_COMPILED template struct compiled_library<PIPE_VERSION, compiled_kernels, compiled_sanitizer,
                                               compiled_containers>;
[[gnu::used]] static char const* const needs_compiled_library =
    &compiled_library<PIPE_VERSION, compiled_kernels, compiled_sanitizer,
                      compiled_containers>::is_linked;

}  // namespace pp::detail
#endif
