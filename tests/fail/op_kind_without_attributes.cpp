// error: op_kind_without::attributes|must be initialized by a constant expression|expression must have a constant value
// says: non-.?constexpr.? function .*attributes
// SPDX-License-Identifier: BSL-1.0
//
// Attributes that the row of a kind does not name.
#include <pipe/graph/op.hpp>

constexpr pp::detail::op made() {
  pp::detail::op o{};
#ifdef PIPE_EXPECT_OK
  o.kind = pp::op_kind::norm;
#else
  o.kind = pp::op_kind::softmax;
#endif
  o.attributes = pp::detail::norm_attributes{.has_mean = true, .epsilon = 1e-5f};
  return pp::detail::complete(o);
}
constexpr pp::detail::op layer_norm = made();
