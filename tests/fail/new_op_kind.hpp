// SPDX-License-Identifier: BSL-1.0
//
// A kind of op that has been added to the enumeration, or would have been: the one after the last,
// with no row and no case anywhere. The positive twin is a kind that has all of them.
#pragma once

#include <pipe/passes/group.hpp>

#ifdef PIPE_EXPECT_OK
inline constexpr pp::op_kind kind = pp::op_kind::softmax;
#else
inline constexpr auto kind = pp::op_kind(pp::detail::op_kinds);
#endif

/// A program of one kernel group, whose anchor is of that kind.
struct lone_group {
  using element = float;
  using value = float;
  using leaves = pp::detail::layers<>;
  static constexpr int samples = 1, groups = 1;
  static constexpr pp::detail::group group_at(int) {
    pp::detail::group g;
    g.anchor = kind;
    g.rows = 1;
    g.columns = 16;
    g.in[0] = 0;
    g.out[0] = 1;
    g.operands = 2;
    return g;
  }
};
