// SPDX-License-Identifier: BSL-1.0
//
// Position tables: sines and cosines of wavelengths in a geometric series from 2 pi to 2 pi * base.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/graph/op.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// An entry of a table with `columns` columns; row t is position t.
///
/// rotary:     angles t / base^(2i / columns) for i < columns / 2: first the cosines of all angles,
///             then the sines. Su et al., RoFormer, 2021
/// sinusoidal: the same angles, column 2i the sine and column 2i + 1 the cosine. Vaswani et al.,
///             2017, section 3.5
///
/// how.scale is the base of the wavelengths.
///
/// needs: how.kind is rotary or sinusoidal; columns >= 2 for rotary
inline double table_entry(initializer how, int columns, long row, int column) {
  int const half = columns / 2;
  bool const rotary = how.kind == distribution::rotary;
  int const i = rotary ? column % half : column / 2;
  double const angle = double(row) * libm::pow(double(how.scale), -2.0 * i / columns);
  bool const cosine = rotary ? column < half : column % 2 == 1;
  return cosine ? libm::cos(angle) : libm::sin(angle);
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
