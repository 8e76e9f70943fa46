// SPDX-License-Identifier: BSL-1.0
//
// A check against --use_fast_math and its parts, for which there is no macro. __nvvm_reflect gives
// the options of the device compiler; if one is wrong, the call of a function without a definition
// is not removed. Then ptxas (or nvlink) ends with one line that names the function.
#pragma once

#include <pipe/base/config.hpp>

#ifdef __NVCC__
extern "C" __device__ int __nvvm_reflect(char const* question);
extern "C" __device__ void
pipe_needs_ieee_arithmetic_compile_without_use_fast_math_ftz_prec_div_prec_sqrt();
#endif

namespace pp::cuda {

/// Compiles to nothing; with a wrong option, does not link.
PIPE_HD PIPE_INLINE void require_ieee_arithmetic() {
#ifdef __CUDA_ARCH__
  if (__nvvm_reflect("__CUDA_FTZ") != 0 || __nvvm_reflect("__CUDA_PREC_DIV") == 0 ||
      __nvvm_reflect("__CUDA_PREC_SQRT") == 0)
    pipe_needs_ieee_arithmetic_compile_without_use_fast_math_ftz_prec_div_prec_sqrt();
#endif
}

}  // namespace pp::cuda
