// SPDX-License-Identifier: BSL-1.0
//
// The options of layers that move a window over an image or a sequence: its extents, its strides,
// the cells around the input, and the distance of its cells.
#pragma once

#include <concepts>

#include <pipe/graph/layer_option.hpp>

namespace pp {

namespace detail {

/// A window along the two axes of an image; of a sequence the second is not read.
struct window {
  static constexpr int by_its_size = -1 - 0x7fffffff;
  int size[2]{1, 1}, stride[2]{by_its_size, by_its_size};
  int padding[2]{0, 0}, dilation[2]{1, 1};
  constexpr int stride_along(int axis) const {
    return stride[axis] == by_its_size ? size[axis] : stride[axis];
  }
};

/// The extents of a window: an int for both, or Axes<...>.
struct extents_of_window {
  int high = 1, wide = 1;
  friend constexpr bool operator==(extents_of_window, extents_of_window) = default;
};
template <class E>
concept window_extents = std::same_as<E, int> || std::same_as<E, extents_of_window>;

/// A window of these extents.
constexpr window window_of(extents_of_window size) { return window{{size.high, size.wide}}; }
constexpr window window_of(int size) { return window{{size, size}}; }

/// Sets what option O says of a window, if anything.
template <class O>
constexpr void join_window([[maybe_unused]] window& w) {
  if constexpr (requires { O::join(w); }) O::join(w);
}

}  // namespace detail

/// The two extents of a window that is not square: `Conv2d<64, Axes<1, 7>>`.
template <int Height, int Width>
inline constexpr detail::extents_of_window Axes{Height, Width};

/// An option: the steps of the window, down and across.
template <int Down, int Across = Down>
struct Stride {
  static constexpr auto option = detail::option_kind::stride;
  static constexpr void join(detail::window& w) { w.stride[0] = Down, w.stride[1] = Across; }
};
/// An option: the rows of cells above and below the input that windows reach, and the columns left
/// and right of it.
template <int Rows, int Columns = Rows>
struct Padding {
  static constexpr auto option = detail::option_kind::padding;
  static constexpr void join(detail::window& w) { w.padding[0] = Rows, w.padding[1] = Columns; }
};
/// An option: the distance of neighbouring cells of the window, down and across.
template <int Down, int Across = Down>
struct Dilation {
  static constexpr auto option = detail::option_kind::dilation;
  static constexpr void join(detail::window& w) { w.dilation[0] = Down, w.dilation[1] = Across; }
};

}  // namespace pp
