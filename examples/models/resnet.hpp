// SPDX-License-Identifier: BSL-1.0
//
// Residual networks: He et al., Deep residual learning for image recognition, 2016; Zagoruyko and
// Komodakis, Wide residual networks, 2016; Xie et al., Aggregated residual transformations, 2017.
#pragma once

#include <type_traits>

#include "parts.hpp"

namespace models {

/// Two convolutions of 3 x 3; the first carries the stride.
template <int C, int Steps = 1>
using Basic = Seq<ConvNorm<C, 3, Steps>, ReLU, ConvNorm<C, 3>>;
/// 1 x 1 to `Inner` channels, 3 x 3 with the stride, as torchvision has it, and 1 x 1 to `C`.
template <int C, int Inner, int Number = 1, int Steps = 1>
using Bottleneck =
    Seq<ConvNorm<Inner, 1>, ReLU, ConvNorm<Inner, 3, Steps, Number>, ReLU, ConvNorm<C, 1>>;

/// A block with a projected shortcut, where channels or size change, and one without.
template <class Main, int C, int Steps>
using Projected = Seq<SumOf<Main, ConvNorm<C, 1, Steps>>, ReLU>;
template <class Main>
using Plain = Seq<Residual<Main>, ReLU>;

template <int C>
using Stem = Seq<ConvNorm<C, 7, 2>, ReLU, MaxPool2d<3, Stride<2>, Padding<1>>>;

template <int Blocks, int C>
using Widened = Stack<Blocks, Projected<Basic<C, 2>, C, 2>, Plain<Basic<C>>>;
/// A, B, C and D blocks of two convolutions on `Width` channels, on twice as many, ...
template <int A, int B, int C, int D, int Width = 64, int Classes = 1000,
          class Image = Input<224, 224, 3>>
  requires(A > 0 && B > 0 && C > 0 && D > 0)
struct ShallowResNet
    : Model<Image, Named<"stem", Stem<Width>>,
            Named<"layer1", Stack<A, Plain<Basic<Width>>, Plain<Basic<Width>>>>,
            Named<"layer2", Widened<B, 2 * Width>>, Named<"layer3", Widened<C, 4 * Width>>,
            Named<"layer4", Widened<D, 8 * Width>>, MeanPool, Named<"fc", Linear<Classes>>,
            CrossEntropy> {
  static constexpr int blocks[] = {A, B, C, D}, convolutions = 2;
};

using ResNet18 = ShallowResNet<2, 2, 2, 2>;
using ResNet34 = ShallowResNet<3, 4, 6, 3>;

/// Blocks of C channels, `Inner` of them inside, in `Number` groups.
template <int Blocks, int C, int Inner, int Number, int Steps>
using DeepStack = Stack<Blocks, Projected<Bottleneck<C, Inner, Number, Steps>, C, Steps>,
                        Plain<Bottleneck<C, Inner, Number>>>;
/// 3, B, C and 3 blocks with a bottleneck; `Inner`: the channels inside the first ones, which have
/// 4 * Width outside.
template <int B, int C, int Inner, int Number = 1, int Width = 64, int Classes = 1000,
          class Image = Input<224, 224, 3>>
  requires(B > 0 && C > 0)
struct DeepResNet : Model<Image, Named<"stem", Stem<Width>>,
                          Named<"layer1", DeepStack<3, 4 * Width, Inner, Number, 1>>,
                          Named<"layer2", DeepStack<B, 8 * Width, 2 * Inner, Number, 2>>,
                          Named<"layer3", DeepStack<C, 16 * Width, 4 * Inner, Number, 2>>,
                          Named<"layer4", DeepStack<3, 32 * Width, 8 * Inner, Number, 2>>, MeanPool,
                          Named<"fc", Linear<Classes>>, CrossEntropy> {
  static constexpr int blocks[] = {3, B, C, 3}, convolutions = 3;
};

using ResNet50 = DeepResNet<4, 6, 64>;
using ResNet101 = DeepResNet<4, 23, 64>;
using ResNet152 = DeepResNet<8, 36, 64>;
using WideResNet50 = DeepResNet<4, 6, 128>;
using WideResNet101 = DeepResNet<4, 23, 128>;
using ResNeXt50 = DeepResNet<4, 6, 128, 32>;

/// Norm and activation come first, and the shortcut is of what they make where channels change.
template <int C, int Steps>
using Widen = Seq<BatchNorm, ReLU,
                  SumOf<Seq<Conv2d<C, 3, Stride<Steps>, Padding<1>, NoBias>, BatchNorm, ReLU,
                            Conv2d<C, 3, Padding<1>, NoBias>>,
                        Conv2d<C, 1, Stride<Steps>, NoBias>>>;
template <int C>
using Keep = Residual<BatchNorm, ReLU, Conv2d<C, 3, Padding<1>, NoBias>, BatchNorm, ReLU,
                      Conv2d<C, 3, Padding<1>, NoBias>>;
/// Blocks on C channels behind `Before` of them; the first has a projection only where it must.
template <int Blocks, int Before, int C, int Steps>
using WideStack =
    Stack<Blocks, std::conditional_t<Before == C && Steps == 1, Keep<C>, Widen<C, Steps>>, Keep<C>>;

/// WRN-Depth-K for CIFAR, of (Depth - 4) / 6 blocks on 16 K channels, on 32 K and on 64 K.
template <int Depth, int K, int Classes>
  requires(Depth % 6 == 4 && Depth > 4 && K > 0)
struct WideResNet : Model<Input<32, 32, 3>, Conv2d<16, 3, Padding<1>, NoBias>,
                          WideStack<(Depth - 4) / 6, 16, 16 * K, 1>,
                          WideStack<(Depth - 4) / 6, 16 * K, 32 * K, 2>,
                          WideStack<(Depth - 4) / 6, 32 * K, 64 * K, 2>, BatchNorm, ReLU, MeanPool,
                          Linear<Classes>, CrossEntropy> {};

using Wrn28x10 = WideResNet<28, 10, 10>;

}  // namespace models
