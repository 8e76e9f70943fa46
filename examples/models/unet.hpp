// SPDX-License-Identifier: BSL-1.0
//
// U-Net(B, C): Ronneberger, Fischer and Brox, 2015, as torchgpipe has it: five levels, cells of B
// convolutions, C channels in the first.
#pragma once

#include <cstddef>
#include <utility>

#include "parts.hpp"

namespace models {

template <int C>
using Unit = Seq<Conv2d<C, 3, Padding<1>, NoBias>, Dropout2d<1, 10>, InstanceNorm, LeakyReLU>;

/// Channels of a level, from 0: they double where the image halves.
constexpr int channels_at(int first, int number) { return first << number; }

/// B units, the last of which has `Out` channels.
template <int B, int Mid, int Out>
struct unet_cell {
  using type = Seq<Repeat<B - 1, Unit<Mid>>, Unit<Out>>;
};
template <int Mid, int Out>
struct unet_cell<1, Mid, Out> {
  using type = Unit<Out>;
};
template <int B, int Mid, int Out>
using Cell = typename unet_cell<B, Mid, Out>::type;

/// The name of the value of level I: "level 0", ...
template <int I>
inline constexpr text<8> level = {{'l', 'e', 'v', 'e', 'l', ' ', char('0' + I), 0}};

template <class Levels, int B, int C, class Image>
struct unet;
template <std::size_t... I, int B, int C, class Image>
struct unet<std::index_sequence<I...>, B, C, Image> {
  static constexpr int depth = sizeof...(I);
  template <int L>
  using Down = Seq<Cell<B, channels_at(C, L), channels_at(C, L)>, Stash<level<L>>, MaxPool2d<2>>;
  template <int L>
  using Up = Seq<UpsampleNearest<2>, Pop<level<L>, Concat>,
                 Cell<B, channels_at(C, L) / 2, channels_at(C, L) / 2>>;
  using type =
      Model<Image, Down<int(I)>..., Cell<B, channels_at(C, depth), channels_at(C, depth) / 2>,
            Up<depth - 1 - int(I)>..., Conv2d<1, 1, NoBias>, BCE>;
};

template <int B, int C, int Depth = 5, class Image = Input<192, 192, 3>>
struct UNet : unet<std::make_index_sequence<Depth>, B, C, Image>::type {};

struct UNet5x64 : UNet<5, 64> {};
static_assert(parameters_of<UNet5x64>() == 232'687'328);
static_assert(parameters_of<UNet<2, 8, 2>>() == 17'068);

}  // namespace models
