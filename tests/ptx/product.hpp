// SPDX-License-Identifier: BSL-1.0
//
// How a tensor core adds: see add_product.
#pragma once

#include <cmath>

namespace ptx {

/// c[16, 8] += a[16, Depth] b[Depth, 8]. Products are exact; their sum and the accumulator are rounded once, to nearest: a first model.
template <int Depth>
void add_product(float (&c)[16][8], float const (&a)[16][Depth], float const (&b)[Depth][8]) {
  for (int m = 0; m < 16; ++m) {
    double sum[8];
    for (int n = 0; n < 8; ++n) sum[n] = double(c[m][n]);
    for (int k = 0; k < Depth; ++k)
      for (int n = 0; n < 8; ++n) sum[n] += double(a[m][k]) * double(b[k][n]);
    for (int n = 0; n < 8; ++n) c[m][n] = float(sum[n]);
  }
}

}  // namespace ptx
