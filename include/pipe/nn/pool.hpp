// SPDX-License-Identifier: BSL-1.0
//
// Pooling of a sequence to one row: the mean of its positions, the first or the last. If the rows
// come from token ids, positions with id -1 are padding, wherever they are, and are left out; a
// sample of padding alone gives zeros.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

namespace detail {

/// Pooling as a layer; a fault for a single position, where it would do nothing.
template <pool_kind Which>
struct pooled {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    handle const x = b.current();
    if (x.form.rows() < 2) return b.report(wrong::pooling_needs_more_than_one_position, x.form);
    b.set(b.pool(x, Which));
  }
};

}  // namespace detail

/// The mean over the positions of a sample that are not padding.
///
/// shape:  (T, C) -> (C); all extents but the last are positions
struct MeanPool : detail::pooled<detail::pool_kind::mean> {};
/// The first position that is not padding.
///
/// shape:  (T, C) -> (C)
struct FirstPosition : detail::pooled<detail::pool_kind::first> {};
/// The last position that is not padding, whose row depends on the whole sample in a causal model.
///
/// shape:  (T, C) -> (C)
struct LastPosition : detail::pooled<detail::pool_kind::last> {};

}  // namespace pp
