// SPDX-License-Identifier: BSL-1.0
//
// The input of a model: the first item of its list.
#pragma once

#include <pipe/graph/builder.hpp>

namespace pp {

/// Token ids in [0, Vocabulary), `Context` of them per sample; -1 is padding.
template <int Vocabulary, int Context>
struct Tokens {
  static constexpr detail::handle input{detail::operand{detail::space::input, 0},
                                        sample_shape(Context), true, Vocabulary};
};

/// Samples of real numbers: Input<784>, Input<128, 64> (T, C), Input<32, 32, 3> (H, W, C). One to
/// four extents.
template <int... Extents>
struct Input {
  static constexpr sample_shape form = [] {
    if constexpr (sizeof...(Extents) > 0 && sizeof...(Extents) <= sample_shape::max_rank)
      return sample_shape(Extents...);
    return sample_shape{};  // refused by the builder
  }();
  static constexpr detail::handle input{detail::operand{detail::space::input, 0}, form};
};

namespace detail {

/// An item that is an input of a model: Tokens, Input, or one of these with a name.
template <class Item>
concept input_item = requires {
  { Item::input } -> std::convertible_to<handle>;
};

}  // namespace detail

}  // namespace pp
