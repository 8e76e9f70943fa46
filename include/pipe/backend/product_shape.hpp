// SPDX-License-Identifier: BSL-1.0
//
// The extents of a matrix product.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

/// The extents M (rows), N (columns) and K (inner) of c (M, N) = a (M, K) b (K, N).
struct product_shape {
  long rows, columns, inner;
};

}  // namespace pp::detail
