// SPDX-License-Identifier: BSL-1.0
//
// The attention option of the CUDA backend: library kernels or cuDNN.
#pragma once

#include <pipe/backend/cuda/attention/attention_option.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp::option_family {

/// The family of attention options: every attention_option.
struct attentions : detail::any_family {
  using fallback = OwnAttention;
  template <class O>
  static constexpr bool holds() {
    return detail::attention_option<O>;
  }
};

}  // namespace pp::option_family
