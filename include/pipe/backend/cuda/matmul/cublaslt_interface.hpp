// SPDX-License-Identifier: BSL-1.0
//
// The part of cuBLASLt's C interface that products use: types, numbers and functions with the
// layout and the values of <cublasLt.h>. <cublasLt.h> and the headers that it includes would be a
// twentieth of what nvcc reads with this library, even in programs that call no cuBLASLt, and a
// program may be compiled where it is not installed. The stand-in of tests/ptx is compiled with
// <cublasLt.h>, and holds both equal.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pipe/base/config.hpp>

struct CUstream_st;  // a cudaStream_t is a pointer to it

namespace pp::cuda::lt {

// Objects that the library creates and destroys.
struct context;
struct operation;
struct layout;
struct preference;

enum class status { success = 0, not_supported = 15 };
/// Types of elements, as in cudaDataType_t.
enum class number { fp32 = 0, fp16 = 2, bf16 = 14 };
enum class compute_type { fp32 = 68, tf32 = 77 };
enum class transposition { none = 0, transposed = 1 };

/// Attributes of an operation.
enum class operation_field {
  transposition_a = 3,
  transposition_b = 4,
  epilogue = 7,
  bias = 8,
  aux = 11,
  aux_leading = 12
};
enum class epilogue {
  none = 1,
  bias = 4,
  relu_bias = 2 | bias,
  gelu_aux = 32 | 128,
  gelu_aux_bias = gelu_aux | bias,
  gelu_gradient = 64 | 128
};

/// Attributes of a preference.
enum class preference_field {
  workspace_bytes = 1,
  reductions = 3,
  alignment_a = 5,
  alignment_b = 6,
  alignment_c = 7,
  alignment_d = 8
};
/// Splits are added in the format in which products are summed.
inline constexpr std::uint32_t reduces_in_compute_type = 2;

struct algorithm {
  std::uint64_t data[8];
};
struct choice {
  lt::algorithm algorithm;
  std::size_t workspace_bytes;
  status state;
  float waves;
  int reserved[4];
};

/// The functions of the library that are used; null before it is opened.
struct functions {
  status (*create)(context**) = nullptr;
  status (*destroy)(context*) = nullptr;
  char const* (*text_of)(status) = nullptr;
  status (*create_operation)(operation**, compute_type, number scale) = nullptr;
  status (*destroy_operation)(operation*) = nullptr;
  status (*set_operation)(operation*, operation_field, void const*, std::size_t bytes) = nullptr;
  status (*create_layout)(layout**, number, std::uint64_t rows, std::uint64_t columns,
                          std::int64_t leading) = nullptr;
  status (*destroy_layout)(layout*) = nullptr;
  status (*create_preference)(preference**) = nullptr;
  status (*destroy_preference)(preference*) = nullptr;
  status (*set_preference)(preference*, preference_field, void const*, std::size_t bytes) = nullptr;
  status (*choose)(context*, operation*, layout* a, layout* b, layout* c, layout* d, preference*,
                   int most, choice*, int* count) = nullptr;
  status (*multiply)(context*, operation*, void const* alpha, void const* a, layout*, void const* b,
                     layout*, void const* beta, void const* c, layout*, void* d, layout*,
                     algorithm const*, void* workspace, std::size_t bytes, CUstream_st*) = nullptr;
};

}  // namespace pp::cuda::lt
