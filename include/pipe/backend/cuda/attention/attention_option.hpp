// SPDX-License-Identifier: BSL-1.0
//
// The option of a Pipeline that chooses the implementation of attention on a GPU: kernels of this
// library, or another library, whose sums differ in their last bits. Gradients are always computed
// by kernels of this library: cuDNN's gradients are sums by atomics, in no fixed order. The other
// choice, CudnnAttention, is in a header of its own, <pipe/cudnn_attention.cuh>, which needs
// cuDNN's headers.
#pragma once

namespace pp {

/// Kernels of this library compute attention (default). Has no effect on a host.
struct OwnAttention {
  using attention_library = void;
};

namespace detail {

/// attention_library: void, or a class of calls of a library, such as cuda::cudnn_attention.
template <class O>
concept attention_option = requires { typename O::attention_library; };

}  // namespace detail

}  // namespace pp
