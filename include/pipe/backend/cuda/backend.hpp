// SPDX-License-Identifier: BSL-1.0
//
// The CUDA backend as an option of a Pipeline. Its kernels need nvcc: <pipe/pipe.hpp> includes the
// engine that launches them if nvcc compiles the file.
#pragma once

#include <type_traits>

#include <pipe/backend/backend.hpp>
#include <pipe/backend/cuda/matmul/matmul_option.hpp>
#include <pipe/backend/cuda/chain_rules.hpp>
#include <pipe/base/custom.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/passes/group.hpp>

namespace pp {

namespace detail {

/// Whether kernels can be compiled for nvcc's present target: they need `cp.async` and the tensor
/// cores of sm_80.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr bool has_target_for_kernels = false;
#else
inline constexpr bool has_target_for_kernels = true;
#endif

/// Whether kernels with wgmma and setmaxnreg can be: only code for sm_90a may have these
/// instructions.
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr bool has_target_for_wgmma = false;
#else
inline constexpr bool has_target_for_wgmma = true;
#endif

#ifdef __CUDACC__
inline constexpr bool is_nvcc = true;
using device_stream = cudaStream_t;
#else
inline constexpr bool is_nvcc = false;
using device_stream = struct no_stream*;
#endif

/// Whether there are kernels for the updates of optimizer O.
template <class O>
constexpr bool has_updates_for_cuda() {
  if constexpr (custom::tensor_optimizer<O> && !custom::two_pass_optimizer<O> &&
                !spectral_optimizer<O>)
    return false;
  else if constexpr (custom::element_optimizer<O>)
    return O::states <= 2;
  else
    return true;
}

/// The maximum columns of a head of attention on a GPU, whose kernels hold a query's columns in
/// registers.
inline constexpr int most_of_a_cuda_head = 128;

/// Whether only the host's engine runs o.
constexpr bool runs_on_the_host_alone(op const& o) {
  return o.kind == op_kind::attention &&
         o.columns / o.attributes.attention().heads > most_of_a_cuda_head;
}

}  // namespace detail

/// The CUDA backend, on one GPU for all ranks of a process or on several: see Devices. Each rank
/// has streams.
struct Cuda {
  static constexpr char const* name = "cuda";
  static constexpr bool has_own_memory = true, has_transposes = false;

  template <class Precision>
  static constexpr bool computes_in =
      std::is_same_v<typename Precision::element, float> && Precision::product != dtype::bf16x3;

  template <class Chosen>
  static constexpr auto diagnose() {
    if constexpr (!detail::is_nvcc)
      return detail::diagnosis_of<wrong::cuda_is_compiled_by_nvcc, Cuda>();
    else if constexpr (!detail::has_target_for_kernels)
      return detail::diagnosis_of<wrong::cuda_needs_a_target_from_sm_80, Cuda>();
    else if constexpr (Chosen::products::products == detail::product_policy::wgmma &&
                       !detail::has_target_for_wgmma)
      return detail::diagnosis_of<wrong::wgmma_products_need_sm_90a_alone,
                                  typename Chosen::products>();
    else if constexpr (!computes_in<typename Chosen::precision>)
      return detail::diagnosis_of<wrong::backend_has_no_such_precision, Cuda,
                                  typename Chosen::precision>();
    else if constexpr (!detail::has_updates_for_cuda<typename Chosen::optimizer>())
      return detail::diagnosis_of<wrong::optimizer_has_no_passes_for_cuda, Cuda,
                                  typename Chosen::optimizer>();
    else if constexpr (Chosen::transport::transport::copies &&
                       !detail::device_transport<typename Chosen::transport::transport>)
      return detail::diagnosis_of<wrong::ranks_of_a_device_share_its_memory, Cuda,
                                  typename Chosen::transport>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }

  /// Whether a Custom layer has functions for a device, on values of type T.
  template <class Layer, class T>
  static constexpr bool can_call =
      requires(custom::forward<T> const& f, custom::input_gradient<T> const& b,
               detail::device_stream on) {
        Layer::kernels::forward(f, on);
        Layer::kernels::input_gradient(b, on);
      } &&
      (Layer::buffers == 0 ||
       requires(custom::statistics<T> const& s, detail::device_stream on) {
         Layer::kernels::statistics(s, on);
       }) &&
      (Layer::parameters == 0 ||
       requires(custom::weight_gradient<T> const& w, detail::device_stream on) {
         Layer::kernels::weight_gradient(w, on);
       });
  /// The first of a model's leaves that has functions but none for a device, or -1.
  template <class T, class... L>
  static constexpr int first_without_kernels(detail::layers<L...>) {
    constexpr auto lacks = []<class Layer>(Layer const*) {
      if constexpr (requires { typename Layer::kernels; })
        return !can_call<Layer, T>;
      else
        return false;
    };
    bool const found[] = {lacks(static_cast<L const*>(nullptr))...};
    for (int i = 0; i < int(sizeof...(L)); ++i)
      if (found[i]) return i;
    return -1;
  }
  /// The first of a model's leaves that GPUs do not run, or -1.
  template <class M>
  static constexpr int first_on_the_host_alone() {
    for (int i = 0; i < M::graph.size.ops; ++i)
      if (detail::runs_on_the_host_alone(M::graph.ops[i])) return M::graph.ops[i].leaf;
    return -1;
  }
  template <class M, class Chosen>
  static constexpr auto diagnose_model() {
    using leaves = typename M::leaves;
    constexpr int lacking = first_without_kernels<typename Chosen::precision::value>(leaves{});
    if constexpr (lacking >= 0)
      return detail::diagnosis_of<wrong::custom_layer_has_no_functions_for_cuda,
                                  detail::leaf_at<lacking, leaves>>();
    else if constexpr (constexpr int alone = first_on_the_host_alone<M>(); alone >= 0)
      return detail::diagnosis_of<wrong::layer_runs_on_the_host_alone,
                                  detail::leaf_at<alone, leaves>, Cuda>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }

  /// The gradients of a norm run as one kernel, and so do narrow layers, unless all products are by
  /// cuBLASLt, which has other bits.
  template <class Precision, class Products>
  using chains = cuda::chains_of_launches<typename Precision::value, Precision::product,
                                          !detail::needs_cublaslt(Products::products)>;

  /// One: threads of the host have no parts of a kernel.
  static constexpr int parts_for(detail::group const&, int, int) { return 1; }
  /// Elements of workspace for an optimizer's product of matrices: none on the device.
  template <class T>
  static constexpr long contraction_elements(long, long, long) {
    return 0;
  }
};

}  // namespace pp
