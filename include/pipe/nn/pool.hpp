// SPDX-License-Identifier: BSL-1.0
//
// Pooling of a sequence to one row: the mean of its positions, the first, the last. Where the rows
// stand for token ids, a position whose id is -1 is padding, wherever it is, and is left out; a
// sample that is all padding becomes zeros.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

namespace detail {

template <pool_kind Which>
struct pooled {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    handle const x = b.current();
    if (x.form.rows() < 2) return b.complain(fault_kind::pool_of_one_row, shape{}, x.form);
    b.set(b.pool(x, Which));
  }
};

}  // namespace detail

/// The mean over the positions of a sample that are no padding.
///
/// shape:  (T, C) -> (C), all extents but the last together being positions
struct MeanPool : detail::pooled<pool_kind::mean> {};
/// The first position that is no padding.
///
/// shape:  (T, C) -> (C)
struct FirstPosition : detail::pooled<pool_kind::first> {};
/// The last position that is no padding: where a causal model has seen the whole sample.
///
/// shape:  (T, C) -> (C)
struct LastPosition : detail::pooled<pool_kind::last> {};

}  // namespace pp
