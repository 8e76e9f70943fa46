// SPDX-License-Identifier: BSL-1.0
//
// The description of layers that map the cells of an image (H, W, C) or of a sequence (T, C) to
// other cells, channel by channel: pools, upsampling, padding. Each names a rule for its axes.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp::detail {

/// The axes of a value whose last extent is channels: two of an image, one of a sequence. The
/// second axis of a sequence has one cell, which every rule keeps.
///
/// needs: describe has found no fault
template <int Rank, class Builder>
constexpr bool needs_axes(Builder& b) {
  static_assert(Rank == 1 || Rank == 2);
  if (!b.needs_numbers()) return false;
  sample_shape const form = b.current().form;
  if (form.rank != Rank + 1)
    b.report(Rank == 2 ? wrong::layer_needs_an_image_of_three_extents
                       : wrong::layer_needs_a_sequence_of_two_extents,
             form);
  return b.ok();
}

/// Adds the resampling of the current value, each of whose axes `map` describes.
///
/// needs: map(axis, cells) -> axis_map; needs_axes<Rank>(b)
template <int Rank, class Builder, class Map>
constexpr void resample(Builder& b, axis_rule rule, cell_reduction reduction, Map const& map) {
  handle const x = b.current();
  resample_attributes by{reduction, rule};
  for (int i = 0; i < Rank; ++i) {
    by.axis[i] = map(i, x.form.extent[i]);
    by.axis[i].in = x.form.extent[i];
    if (!b.needs_positive(by.axis[i].out)) return;
  }
  b.set(b.resample(x, by));
}

/// A resampling by factors, or to given extents.
template <int Rank, class Builder>
constexpr void resample_by(Builder& b, axis_rule rule, cell_reduction reduction, bool by_factor,
                           int rows, int columns) {
  if (!needs_axes<Rank>(b) || !b.needs_positive(rows) || !b.needs_positive(columns)) return;
  sample_shape const form = b.current().form;
  if (by_factor && (!b.needs_room(sample_shape(form.extent[0], rows), most_numbers) ||
                    !b.needs_room(sample_shape(form.extent[1], columns), most_numbers)))
    return;
  resample<Rank>(b, rule, reduction, [&](int i, int in) {
    axis_map m{};
    m.out = (i == 0 ? rows : columns) * (by_factor ? in : 1);
    return m;
  });
}

}  // namespace pp::detail
