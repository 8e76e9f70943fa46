// SPDX-License-Identifier: BSL-1.0
//
// cuDNN's attention: an option for programs that nvcc compiles. The only header that needs cuDNN's,
// and only if they are there; not part of <pipe/pipe.hpp>. Nothing is linked.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/backend/cuda/attention/cudnn.cuh>

namespace pp {

/// Attention runs by cuDNN where that can do it, its gradients by our kernels: values differ in
/// their last bits. Has no effect on a host.
struct CudnnAttention {
  using attention_library = cuda::cudnn_attention;
};

}  // namespace pp
