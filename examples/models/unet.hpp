// SPDX-License-Identifier: BSL-1.0
//
// U-Net(B, C): Ronneberger, Fischer and Brox, 2015, as torchgpipe has it: five levels, cells of B
// convolutions, C channels in the first.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "parts.hpp"

namespace models {

template <int C>
using Unit = Seq<Conv2d<C, 3, Padding<1>, NoBias>, Dropout2d<1, 10>, InstanceNorm, LeakyReLU>;

/// Channels of a level, from 0: they double where the image halves.
constexpr int channels_at(int first, int number) { return first << number; }

/// B units, the last of which has `Out` channels.
template <int B, int Mid, int Out>
using Cell = std::conditional_t<(B > 1), Seq<Repeat<B - 1, Unit<Mid>>, Unit<Out>>, Seq<Unit<Out>>>;

/// The name of the value of level Index: "level 0", ...
template <int Index>
inline constexpr Text<8> level = {{'l', 'e', 'v', 'e', 'l', ' ', char('0' + Index), 0}};

template <class Levels, int B, int C, class Image>
struct unet;
template <std::size_t... Is, int B, int C, class Image>
struct unet<std::index_sequence<Is...>, B, C, Image> {
  static constexpr int depth = sizeof...(Is);
  template <int L>
  using Down = Seq<Cell<B, channels_at(C, L), channels_at(C, L)>, Stash<level<L>>, MaxPool2d<2>>;
  template <int L>
  using Up = Seq<UpsampleNearest<2>, Pop<level<L>, Concat>,
                 Cell<B, channels_at(C, L) / 2, channels_at(C, L) / 2>>;
  using type =
      Model<Image, Down<int(Is)>..., Cell<B, channels_at(C, depth), channels_at(C, depth) / 2>,
            Up<depth - 1 - int(Is)>..., Conv2d<1, 1, NoBias>, BCE>;
};

template <int B, int C, int Depth = 5, class Image = Input<192, 192, 3>>
  requires(B > 0 && C > 0 && C % 2 == 0 && Depth > 0 && Depth < 10)
struct UNet : unet<std::make_index_sequence<Depth>, B, C, Image>::type {};

using UNet5x64 = UNet<5, 64>;

/// Two convolutions with batch norms.
template <int C>
using Double = Seq<Conv2d<C, 3, Padding<1>, NoBias>, BatchNorm, ReLU,
                   Conv2d<C, 3, Padding<1>, NoBias>, BatchNorm, ReLU>;

template <class Levels, int C, int Classes, class Image>
struct batch_norm_unet;
template <std::size_t... Is, int C, int Classes, class Image>
struct batch_norm_unet<std::index_sequence<Is...>, C, Classes, Image> {
  static constexpr int depth = sizeof...(Is);
  template <int L>
  using Down = Seq<Double<channels_at(C, L)>, Stash<level<L>>, MaxPool2d<2>>;
  /// The channels of the finer level come first.
  template <int L>
  using Up = Seq<ConvTranspose2d<channels_at(C, L), 2, Stride<2>>, Stash<"raised">,
                 Recall<level<L>>, Pop<"raised", Concat>, Double<channels_at(C, L)>>;
  using type = Model<Image, Down<int(Is)>..., Double<channels_at(C, depth)>,
                     Up<depth - 1 - int(Is)>..., Conv2d<Classes, 1>, CrossEntropy>;
};

/// The U-Net of milesial's Pytorch-UNet: batch norms, transposed convolutions, a class for each
/// pixel. Images of any size that Depth halvings divide.
template <int C, int Classes, class Image, int Depth = 4>
  requires(C > 0 && Depth > 0 && Depth < 10)
struct BatchNormUNet : batch_norm_unet<std::make_index_sequence<Depth>, C, Classes, Image>::type {
  static constexpr int depth = Depth;
};

/// Trained on the cars of Carvana, at half of their size.
using CarvanaUNet = BatchNormUNet<64, 2, Input<640, 960, 3>>;

}  // namespace models
