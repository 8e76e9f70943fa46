// SPDX-License-Identifier: BSL-1.0
//
// The backend, and what it says of the options that depend on it.
#pragma once

#include <concepts>

#include <pipe/backend/cuda/backend.hpp>
#include <pipe/backend/host/backend.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/train/options/optimizer.hpp>
#include <pipe/train/options/precision.hpp>
#include <pipe/train/options/products.hpp>

namespace pp {

template <class B>
concept compute_backend = requires {
  { B::parts_for(group{}, 1, 1) } -> std::same_as<int>;
};

namespace wrong {
template <class... What>
struct cuda_is_compiled_by_nvcc;
template <class... What>
struct cuda_needs_a_target_from_sm_80;
template <class... What>
struct backend_has_no_such_precision;
template <class... What>
struct cuda_updates_single_elements;
template <class... What>
struct custom_layer_has_no_functions_for_cuda;
template <class... What>
struct host_has_no_cublaslt;
}  // namespace wrong

/// The first of a model's layers that a device cannot run: a user-defined one without functions for
/// it; or -1.
template <class Backend, class T, class... L>
constexpr int first_without_kernels(layers<L...>) {
  constexpr auto lacks = []<class Layer>(Layer const*) {
    if constexpr (requires { typename Layer::kernels; })
      return !Backend::template can_call<Layer, T>;
    else
      return false;
  };
  bool const found[] = {lacks(static_cast<L const*>(nullptr))...};
  for (int i = 0; i < int(sizeof...(L)); ++i)
    if (found[i]) return i;
  return -1;
}

namespace option_family {
struct backend : any_family {
  using fallback = Host;
  template <class O>
  static constexpr bool holds() {
    return compute_backend<O>;
  }

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<backend>;
    using numbers = typename Options::template get<precision>;
    using update = typename Options::template get<optimizer>;
    using chosen = typename Options::template get<products>;
    constexpr bool on_device = requires { option::is_device; };
    if constexpr (on_device && !is_nvcc)
      return diagnosis_of<wrong::cuda_is_compiled_by_nvcc, option>();
    else if constexpr (on_device && !has_target_for_kernels)
      return diagnosis_of<wrong::cuda_needs_a_target_from_sm_80, option>();
    else if constexpr (!option::template computes_in<numbers>)
      return diagnosis_of<wrong::backend_has_no_such_precision, option, numbers>();
    else if constexpr (on_device && tensor_optimizer<update>)
      return diagnosis_of<wrong::cuda_updates_single_elements, option, update>();
    else if constexpr (!on_device && needs_cublaslt(chosen::products))
      return diagnosis_of<wrong::host_has_no_cublaslt, option, chosen>();
    else if constexpr (!is_constant<workspace_call<update, option, typename numbers::element>>)
      return diagnosis_of<wrong::function_must_be_constexpr, update,
                          wrong::Function<member::workspace_elements>>();
    else
      return std::type_identity<nothing_wrong>{};
  }

  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<backend>;
    if constexpr (requires { option::is_device; }) {
      using value = typename Options::template get<precision>::value;
      using leaves = typename M::leaves;
      constexpr int lacking = first_without_kernels<option, value>(leaves{});
      if constexpr (lacking >= 0)
        return diagnosis_of<wrong::custom_layer_has_no_functions_for_cuda,
                            leaf_at<lacking, leaves>>();
      else
        return std::type_identity<nothing_wrong>{};
    } else {
      return std::type_identity<nothing_wrong>{};
    }
  }
};
}  // namespace option_family

}  // namespace pp
