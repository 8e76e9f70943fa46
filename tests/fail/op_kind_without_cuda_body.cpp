// error: (incomplete type|undefined template|incomplete class).*cuda::kernel_of<.*\d+U?>
// errors(g++): 2
// errors(nvcc): 2
// SPDX-License-Identifier: BSL-1.0
//
// A kind without kernels for a GPU.
#include <pipe/backend/cuda/lowering/lowering.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

using kernels = pp::cuda::lowered<lone_group, 0>;
