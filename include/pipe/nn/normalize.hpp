// SPDX-License-Identifier: BSL-1.0
//
// Rows of length 1, whose dot product is the cosine of their angle.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/nn/join.hpp>

namespace pp {

/// y = x / max(|x|, 1e-12) along the last extent, |x| the square root of the sum of squares.
///
/// shape:  (..., C) -> (..., C)
struct Normalize {
  using formulas = detail::layers<detail::inverse_length<12>>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle const x = b.current();
    b.set(b.row_scale(x, b.template map<detail::inverse_length<12>>(b.row_dot(x, x))));
  }
};

}  // namespace pp
