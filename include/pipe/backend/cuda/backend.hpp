// SPDX-License-Identifier: BSL-1.0
//
// The CUDA backend as an option of a Pipeline. Its kernels are compiled by nvcc: <pipe/pipe.hpp>
// brings the engine that launches them where nvcc compiles the file.
#pragma once

#include <type_traits>

#include <pipe/base/custom.hpp>
#include <pipe/passes/group.hpp>

namespace pp {

/// Whether kernels can be compiled for what nvcc compiles for at the moment: not without `cp.async`
/// and the tensor cores of sm_80.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr bool has_target_for_kernels = false;
#else
inline constexpr bool has_target_for_kernels = true;
#endif

#ifdef __CUDACC__
inline constexpr bool is_nvcc = true;
using device_stream = cudaStream_t;
#else
inline constexpr bool is_nvcc = false;
using device_stream = struct no_stream*;
#endif

template <class P>
class cuda_engine;  // runtime/cuda/engine.cuh

/// One GPU for all ranks, which live in one process; each has a stream.
struct Cuda {
  static constexpr char const* name = "cuda";
  static constexpr bool is_device = true;
  template <class P>
  using engine = cuda_engine<P>;

  template <class Precision>
  static constexpr bool computes_in = std::is_same_v<typename Precision::element, float>;

  /// Whether a Custom layer of values of type T has functions for a device.
  template <class Layer, class T>
  static constexpr bool can_call = requires(custom_forward<T> const& f,
                                            custom_input_gradient<T> const& b, device_stream on) {
    Layer::kernels::forward(f, on);
    Layer::kernels::input_gradient(b, on);
  } && (Layer::parameters == 0 || requires(custom_weight_gradient<T> const& w, device_stream on) {
                                     Layer::kernels::weight_gradient(w, on);
                                   });

  /// A kernel is not shared out among threads of the host.
  static constexpr int parts_for(group const&, int, int) { return 1; }
  template <class P>
  static constexpr long workspace_bytes();  // backend/cuda/lowering.hpp
  /// Of what a rank keeps on the device for parameters and steps.
  template <class Chunk>
  static constexpr long book_bytes(Chunk const* chunks, int chunk_count, int rank, int parameters,
                                   int streams);  // backend/cuda/update/books.hpp
  /// Numbers of workspace for an optimizer's product of matrices: there is none on the device.
  template <class T>
  static constexpr long contraction_elements(long, long, long) {
    return 0;
  }
};

}  // namespace pp
