// error: op_kind_without::workspace|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*workspace
// SPDX-License-Identifier: BSL-1.0
//
// A kind that does not say how much workspace its host kernel needs.
#include <pipe/backend/host/workspace.hpp>
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

constexpr long bytes = pp::host::workspace_bytes<float>(lone_group::group_at(0), 1);
