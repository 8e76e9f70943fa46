// SPDX-License-Identifier: BSL-1.0
//
// Padding of images and sequences: cells around the input that are zeros, its mirror image, or its
// border.
#pragma once

#include <pipe/nn/images/resample.hpp>

namespace pp {

namespace detail {

/// Padding before and after each axis by one, two or four numbers: all sides; above and below, left
/// and right; above, below, left, right.
template <int Rank, axis_rule Rule, int... Cells>
struct padding {
  static constexpr int count = int(sizeof...(Cells));
  static_assert(count == 1 || count == 2 || (count == 4 && Rank == 2),
                "one number, one for each axis, or one for each side");

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!needs_axes<Rank>(b)) return;
    constexpr int n[] = {Cells...};
    for (int i = 0; i < Rank; ++i)
      if (!needs_side(b, i, before(n, i)) || !needs_side(b, i, after(n, i))) return;
    resample<Rank>(b, Rule, cell_reduction::sum, [&](int i, int in) {
      axis_map m{};
      m.before = before(n, i);
      m.out = in + before(n, i) + after(n, i);
      return m;
    });
  }

 private:
  static constexpr int before(int const* n, int axis) {
    return n[count == 1 ? 0 : count == 4 ? 2 * axis : Rank == 2 ? axis : 0];
  }
  static constexpr int after(int const* n, int axis) {
    return n[count == 1 ? 0 : count == 4 ? 2 * axis + 1 : Rank == 2 ? axis : 1];
  }
  /// True, or a fault: only zeros can be cut off, and a mirror image is narrower than its input.
  template <class Builder>
  static constexpr bool needs_side(Builder& b, int axis, int cells) {
    int const extent = b.current().form.extent[axis];
    bool const is_narrow = cells < extent || Rule != axis_rule::reflect;
    if (!b.needs_room(sample_shape(cells < 0 ? -cells : cells), most_numbers)) return false;
    if (Rule != axis_rule::window && !b.needs_not_negative(sample_shape(cells))) return false;
    if (!is_narrow)
      b.report(wrong::reflection_must_be_narrower_than_its_input, sample_shape(extent - 1),
               sample_shape(cells));
    return b.ok();
  }
};

}  // namespace detail

/// Zeros around an image: `Pad<1>` on all sides, `Pad<1, 2>` one above and below and two left and
/// right, `Pad<0, 1, 0, 1>` above, below, left and right. A negative number cuts cells off.
///
/// shape: (H, W, C) -> (H + above + below, W + left + right, C)
template <int... Cells>
struct Pad : detail::padding<2, detail::axis_rule::window, Cells...> {};
/// Zeros before and after a sequence: `Pad1d<2>`, or `Pad1d<2, 0>` before and after.
///
/// shape: (T, C) -> (T + before + after, C)
template <int... Cells>
struct Pad1d : detail::padding<1, detail::axis_rule::window, Cells...> {};

/// The image continued by its mirror image, without repeating its border: c b | a b c d | c b.
///
/// shape: as Pad; each number is at least 0 and less than the extent
template <int... Cells>
struct ReflectionPad : detail::padding<2, detail::axis_rule::reflect, Cells...> {};
/// The same of a sequence.
template <int... Cells>
struct ReflectionPad1d : detail::padding<1, detail::axis_rule::reflect, Cells...> {};

/// The image continued by the cells of its border: a a | a b c d | d d.
///
/// shape: as Pad; each number is at least 0
template <int... Cells>
struct ReplicationPad : detail::padding<2, detail::axis_rule::replicate, Cells...> {};
/// The same of a sequence.
template <int... Cells>
struct ReplicationPad1d : detail::padding<1, detail::axis_rule::replicate, Cells...> {};

}  // namespace pp
