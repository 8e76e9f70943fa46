// error: op_has_other_attributes|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*op_has_other_attributes
// SPDX-License-Identifier: BSL-1.0
//
// Attributes of another kind than the op has.
#include <pipe/graph/attributes.hpp>

constexpr pp::detail::attributes of = pp::detail::attention_attributes{.heads = 4, .kv_heads = 2};
#ifdef PIPE_EXPECT_OK
constexpr int heads = of.attention().heads;
#else
constexpr int heads = of.contraction().inner;
#endif
