// error: op_kind_without::traits|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*traits
// SPDX-License-Identifier: BSL-1.0
//
// A kind without a row in op_traits.hpp.
#include <pipe/graph/layers.hpp>

#include "new_op_kind.hpp"  // PIPE_EXPECT_OK: softmax

constexpr pp::detail::op_traits row = pp::detail::traits_of(kind);
