// error: (incomplete type|undefined template|incomplete class).*op_kind_without::host_kernel<.*\d+U?>
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a branch in the host's list of kernels.
#include <pipe/backend/host/kernels.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

template void pp::host::portable::run<lone_group, 0>(pp::host::arguments<float> const&);
