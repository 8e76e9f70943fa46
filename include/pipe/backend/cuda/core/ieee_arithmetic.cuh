// SPDX-License-Identifier: BSL-1.0
//
// A check against --use_fast_math and its parts, which no macro tells of: the compiler of device
// code answers what it was given, and a call that is not removed has no definition. So ptxas (or
// nvlink) ends with one line that names the function.
#pragma once

#include <pipe/base/config.hpp>

#ifdef __NVCC__
extern "C" __device__ int __nvvm_reflect(char const* question);
extern "C" __device__ void
pipe_needs_ieee_arithmetic_compile_without_use_fast_math_ftz_prec_div_prec_sqrt();
#endif

namespace pp::cuda {

/// Compiles to nothing, or does not link.
PIPE_HD PIPE_INLINE void require_ieee_arithmetic() {
#ifdef __CUDA_ARCH__
  if (__nvvm_reflect("__CUDA_FTZ") != 0 || __nvvm_reflect("__CUDA_PREC_DIV") == 0 ||
      __nvvm_reflect("__CUDA_PREC_SQRT") == 0)
    pipe_needs_ieee_arithmetic_compile_without_use_fast_math_ftz_prec_div_prec_sqrt();
#endif
}

}  // namespace pp::cuda
