// error: (incomplete type|undefined template|incomplete class).*op_kind_without::cuda_body<.*\d+U?>
// errors(clang++): 2
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a branch in CUDA's list of kernels.
#include <pipe/backend/cuda/lowering.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

auto const lower = &pp::cuda::lower_group<lone_group, 0>;
