// SPDX-License-Identifier: BSL-1.0
//
// The options of layers that move a window over an image or a sequence. Each is one number for all
// axes, or the vertical and the horizontal one.
#pragma once

#include <concepts>

#include <pipe/graph/layer_option.hpp>

namespace pp {

namespace detail {

/// A number for each axis of an image.
struct axes {
  int vertical = 1, horizontal = 1;
  /// That of axis i, from 0.
  constexpr int operator[](int i) const { return i == 0 ? vertical : horizontal; }
  friend constexpr bool operator==(axes const&, axes const&) = default;
};

/// The extents of a window: an int, or Axes<...>.
template <class E>
concept window_extents = std::same_as<E, int> || std::same_as<E, axes>;
constexpr axes axes_of(int n) { return axes{n, n}; }
constexpr axes axes_of(axes n) { return n; }

/// The subjects of the options of a window.
struct window_options {
  axes stride{}, padding{0, 0}, dilation{}, output_padding{0, 0};
  int groups = 1;
};

/// Sets what option O is about; other options change nothing.
template <class O>
constexpr void set_window(window_options& w) {
  if constexpr (requires { O::set_window(w); }) O::set_window(w);
}
template <class... Options>
constexpr window_options window_options_of() {
  window_options w;
  (set_window<Options>(w), ...);
  return w;
}

}  // namespace detail

/// The two extents of a window: `Conv2d<64, Axes<1, 7>>`.
template <int Vertical, int Horizontal>
inline constexpr detail::axes Axes{Vertical, Horizontal};

/// An option: the distance between windows, in positions; without it 1, for pools their size.
template <int Vertical, int Horizontal = Vertical>
struct Stride {
  static constexpr auto option = detail::option_kind::stride;
  static constexpr void set_window(detail::window_options& w) { w.stride = {Vertical, Horizontal}; }
};
/// An option: rows or columns of zeros on both sides of the image; 0 without it.
template <int Vertical, int Horizontal = Vertical>
struct Padding {
  static constexpr auto option = detail::option_kind::padding;
  static constexpr void set_window(detail::window_options& w) {
    w.padding = {Vertical, Horizontal};
  }
};
/// An option: the distance between the positions that a window reads; 1 without it.
template <int Vertical, int Horizontal = Vertical>
struct Dilation {
  static constexpr auto option = detail::option_kind::dilation;
  static constexpr void set_window(detail::window_options& w) {
    w.dilation = {Vertical, Horizontal};
  }
};
/// An option: channels and filters are divided into this number of groups, and a filter reads the
/// channels of its group; 1 without it. With as many groups as channels the layer is depthwise.
template <int Number>
struct Groups {
  static constexpr auto option = detail::option_kind::groups;
  static constexpr void set_window(detail::window_options& w) { w.groups = Number; }
};
/// An option of transposed convolutions: rows and columns that the result has more, at its end; 0
/// without it. A convolution of several sizes of images gives one size of result, and this chooses
/// among them.
template <int Vertical, int Horizontal = Vertical>
struct OutputPadding {
  static constexpr auto option = detail::option_kind::output_padding;
  static constexpr void set_window(detail::window_options& w) {
    w.output_padding = {Vertical, Horizontal};
  }
};

}  // namespace pp
