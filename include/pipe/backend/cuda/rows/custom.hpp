// SPDX-License-Identifier: BSL-1.0
//
// User-defined layers on a GPU: their functions are called with a stream, on which they launch
// kernels.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/base/custom.hpp>
#include <pipe/graph/layers.hpp>

namespace pp::cuda {

/// The layer of group G, and the arguments of its functions.
template <class P, int G>
struct custom_layer {
  using T = typename P::element;
  using layer = detail::leaf_at<group_of<P, G>::value.leaf, typename P::leaves>;
  static constexpr op_kind anchor = group_of<P, G>::value.anchor;
  static constexpr sample_shape form = group_of<P, G>::value.attributes.custom().form;

  /// Sets the parameters and buffers, which are the operands of the group from `First` on.
  template <int First, class Arguments>
  static void set_parameters(Arguments& with, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    for (int i = 0; i < layer::parameters; ++i)
      with.parameter[i] = a.maybe<T const>(g.in[First + i]);
    for (int i = 0; i < layer::buffers; ++i)
      with.buffer[i] = a.at<float const>(g.in[First + layer::parameters + i]);
  }
  static custom::forward<T> forward(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    custom::forward<T> with{
        P::samples, form, a.at<T const>(g.in[0]), {}, a.at<T>(g.out[0]), a.maybe<T>(g.out[1])};
    set_parameters<1>(with, a);
    return with;
  }
  static custom::input_gradient<T> input_gradient(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    custom::input_gradient<T> with{P::samples,
                                   form,
                                   a.at<T const>(g.in[0]),
                                   a.at<T const>(g.in[1]),
                                   a.maybe<T const>(g.in[2]),
                                   {},
                                   a.at<T>(g.out[0])};
    set_parameters<3>(with, a);
    return with;
  }
  static custom::weight_gradient<T> weight_gradient(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    custom::weight_gradient<T> with{P::samples,
                                    form,
                                    a.at<T const>(g.in[0]),
                                    a.at<T const>(g.in[1]),
                                    a.maybe<T const>(g.in[2]),
                                    {},
                                    {},
                                    {}};
    set_parameters<3>(with, a);
    for (int i = 0; i < layer::parameters; ++i) with.gradient[i] = a.maybe<float>(g.out[i]);
    return with;
  }
  static custom::statistics<T> statistics(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    custom::statistics<T> with{a.valid_samples < P::samples ? a.valid_samples : P::samples,
                               form,
                               a.at<T const>(g.in[0]),
                               a.maybe<T const>(g.in[1]),
                               {},
                               {},
                               {}};
    set_parameters<2>(with, a);
    for (int i = 0; i < layer::buffers; ++i) with.sum[i] = a.maybe<float>(g.out[i]);
    return with;
  }
  /// The elements of result Index of an op that adds to its results.
  template <int Index>
  static constexpr extent elements() {
    if constexpr (anchor == op_kind::custom_statistics)
      return layer::buffer_elements(Index, form);
    else
      return layer::elements(Index, form);
  }
};

/// The call of a layer's function, in a list of kernels: launch.cuh calls launch() instead of
/// launching a body.
template <class P, int G>
struct custom_call {
  using call = custom_layer<P, G>;
  using kernels = typename call::layer::kernels;

  template <class Stream>
  static void launch(arguments const& a, Stream stream) {
    if constexpr (call::anchor == op_kind::custom)
      kernels::forward(call::forward(a), stream);
    else if constexpr (call::anchor == op_kind::custom_input_gradient)
      kernels::input_gradient(call::input_gradient(a), stream);
    else if constexpr (call::anchor == op_kind::custom_statistics)
      kernels::statistics(call::statistics(a), stream);
    else
      kernels::weight_gradient(call::weight_gradient(a), stream);
  }
};

/// Clears the gradient of parameter Index, or the sum of buffer Index, before the first
/// micro-batch, since the layer's functions only add.
///
/// shape: -> gradient or sum Index (elements); nothing if it is absent or sums are accumulated
template <class P, int G, int Index>
struct clear_sum_kernel {
  static constexpr int operand_index = group_of<P, G>::value.out[Index];
  static constexpr extent elements =
      operand_index < 0 ? 0 : custom_layer<P, G>::template elements<Index>();
  static constexpr int threads = 256;
  static constexpr extent blocks = (elements + threads - 1) / threads;
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (a.accumulate) return;
    constexpr int to = operand_index;
    block.part([&](int thread, state&) {
      extent const at = block.position() * threads + thread;
      if (at < elements) a.at<float>(to)[at] = 0;
    });
  }
};

/// The kernels of group G, a user-defined layer or one of its gradients: first the kernels that
/// clear the sums to which the call adds, then the call.
template <class P, int G>
constexpr auto lower_custom() {
  constexpr detail::group g = group_of<P, G>::value;
  constexpr bool adds =
      g.anchor == op_kind::custom_weight_gradient || g.anchor == op_kind::custom_statistics;
  constexpr bool clears_first = adds && g.out[0] >= 0, clears_second = adds && g.out[1] >= 0,
                 clears_third = adds && g.out[2] >= 0;
  constexpr auto call = kernel_list<custom_call<P, G>>{};
  constexpr auto third = maybe_before<clears_third, clear_sum_kernel<P, G, 2>>(call);
  constexpr auto second = maybe_before<clears_second, clear_sum_kernel<P, G, 1>>(third);
  return maybe_before<clears_first, clear_sum_kernel<P, G, 0>>(second);
}

template <>
struct kernel_of<op_kind::custom> {
  template <class P, int G>
  using list = decltype(lower_custom<P, G>());
};
template <>
struct kernel_of<op_kind::custom_input_gradient> : kernel_of<op_kind::custom> {};
template <>
struct kernel_of<op_kind::custom_weight_gradient> : kernel_of<op_kind::custom> {};
template <>
struct kernel_of<op_kind::custom_statistics> : kernel_of<op_kind::custom> {};

}  // namespace pp::cuda
