// SPDX-License-Identifier: BSL-1.0
//
// The shape of one sample of a value. The library works on micro-batches of B samples; a shape
// never contains B, so that one model type serves every micro-batch size.
#pragma once

#include <pipe/base/config.hpp>

namespace pp {

/// Up to four extents of one sample, the last one fastest: (C), (T, C), (H, W, C).
///
/// law:   rows() * columns() == elements(); columns() is the last extent, the one along which a
///        Linear or a norm works; rank 0 is "no shape" and has 0 elements
struct sample_shape {
  static constexpr int max_rank = 4;
  int extent[max_rank]{};
  int rank = 0;

  constexpr sample_shape() = default;
  template <class... Extents>
    requires(sizeof...(Extents) > 0)
  constexpr explicit sample_shape(Extents... extents) : rank(sizeof...(Extents)) {
    int i = 0;
    ((extent[i++] = int(extents)), ...);
  }

  PIPE_HD constexpr int columns() const { return rank > 0 ? extent[rank - 1] : 0; }
  PIPE_HD constexpr int rows() const {
    int n = 1;
    for (int i = 0; i + 1 < rank; ++i) n *= extent[i];
    return n;
  }
  PIPE_HD constexpr long elements() const { return rank > 0 ? long(rows()) * columns() : 0; }

  /// The same shape with another last extent.
  constexpr sample_shape with_columns(int columns) const {
    sample_shape s = *this;
    s.extent[rank - 1] = columns;
    return s;
  }
  friend constexpr bool operator==(sample_shape const& a, sample_shape const& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i)
      if (a.extent[i] != b.extent[i]) return false;
    return true;
  }
};

}  // namespace pp
