// SPDX-License-Identifier: BSL-1.0
//
// The kernels of an attention and of its gradient, in the order of their launches: the rotation of
// queries and keys, if the attention has a rotation, before all others.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/attention/backward.hpp>
#include <pipe/backend/cuda/attention/forward.hpp>
#include <pipe/backend/cuda/attention/rope.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>

namespace pp::cuda {

/// The kernels of group G, an attention or its gradient: gradients without a reader are not
/// computed, and gradients of rotated queries and keys are rotated back, in registers if the layout
/// allows it.
template <class P, int G>
constexpr auto attention_bodies() {
  using shape = attention_geometry<P, G>;
  using rope = attention_rope<P, G, false>;
  if constexpr (!shape::is_gradient) {
    return maybe_before<shape::is_rotary, rope>(kernel_list<attention_forward<P, G>>{});
  } else {
    constexpr bool rope_follows = shape::is_rotary && !shape::rotates_in_registers;
    constexpr bool of_keys = shape::is_fused || group_of<P, G>::value.out[1] >= 0;
    constexpr bool of_queries = group_of<P, G>::value.out[0] >= 0;
    constexpr std::conditional_t<rope_follows, kernel_list<attention_rope<P, G, true>>,
                                 kernel_list<>>
        back{};
    constexpr auto queries = maybe_before<of_queries, attention_query_gradients<P, G>>(back);
    constexpr auto both = maybe_before<of_keys, attention_key_gradients<P, G>>(queries);
    constexpr auto with_slopes = maybe_before<true, attention_slopes<P, G>>(both);
    return maybe_before<shape::is_rotary, rope>(with_slopes);
  }
}

template <>
struct kernel_of<op_kind::attention> {
  template <class P, int G>
  using list = decltype(attention_bodies<P, G>());
};
template <>
struct kernel_of<op_kind::attention_gradient> : kernel_of<op_kind::attention> {};

}  // namespace pp::cuda
