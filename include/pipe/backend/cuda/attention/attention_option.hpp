// SPDX-License-Identifier: BSL-1.0
//
// The option of a Pipeline that chooses who computes attention on a GPU: our own kernels, or a
// library, whose sums differ in their last bits. Gradients are always by our own kernels: cuDNN's
// add by atomics, in the order in which blocks come. The other choice, CudnnAttention, is in a
// header of its own, <pipe/cudnn_attention.cuh>, which needs cuDNN's headers.
#pragma once

namespace pp {

/// Attention runs by our kernels (default). Has no effect on a host.
struct OwnAttention {
  using attention_library = void;
};

namespace detail {

/// attention_library: void, or a class of calls of a library, such as cuda::cudnn_attention.
template <class O>
concept attention_option = requires { typename O::attention_library; };

}  // namespace detail

}  // namespace pp
