// error: (incomplete type|undefined template).*host::portable::kernel_of<.*\d+U?>|kernel_of<.*\d+>.* has incomplete type
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a kernel on the host.
#include <pipe/backend/host/kernels.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

template void pp::host::portable::run<lone_group, 0>(pp::host::arguments<float> const&);
