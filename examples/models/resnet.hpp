// SPDX-License-Identifier: BSL-1.0
//
// Residual networks: He et al., Deep residual learning for image recognition, 2016; Zagoruyko and
// Komodakis, Wide residual networks, 2016; Xie et al., Aggregated residual transformations, 2017.
#pragma once

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

using ImageNetStem = Seq<ConvNorm<64, 7, 2>, ReLU, MaxPool2d<3, Stride<2>, Padding<1>>>;

struct ResNet18
    : Model<Input<224, 224, 3>, ImageNetStem, Repeat<2, Plain<Basic<64>>>,
            Projected<Basic<128, 2>, 128, 2>, Plain<Basic<128>>, Projected<Basic<256, 2>, 256, 2>,
            Plain<Basic<256>>, Projected<Basic<512, 2>, 512, 2>, Plain<Basic<512>>, MeanPool,
            Linear<1000>, CrossEntropy> {};
static_assert(parameters_of<ResNet18>() == 11'689'512);

/// Blocks of C channels, `Inner` of them inside, in `Number` groups.
template <int Blocks, int C, int Inner, int Number, int Steps>
using Stack = Seq<Projected<Bottleneck<C, Inner, Number, Steps>, C, Steps>,
                  Repeat<Blocks - 1, Plain<Bottleneck<C, Inner, Number>>>>;
/// 3, B, C and 3 blocks with a bottleneck; `Inner`: the channels inside the first ones.
template <int B, int C, int Inner, int Number = 1>
struct DeepResNet
    : Model<Input<224, 224, 3>, ImageNetStem, Stack<3, 256, Inner, Number, 1>,
            Stack<B, 512, 2 * Inner, Number, 2>, Stack<C, 1024, 4 * Inner, Number, 2>,
            Stack<3, 2048, 8 * Inner, Number, 2>, MeanPool, Linear<1000>, CrossEntropy> {};

struct ResNet50 : DeepResNet<4, 6, 64> {};
struct ResNet101 : DeepResNet<4, 23, 64> {};
struct ResNet152 : DeepResNet<8, 36, 64> {};
struct WideResNet50 : DeepResNet<4, 6, 128> {};
struct WideResNet101 : DeepResNet<4, 23, 128> {};
struct ResNeXt50 : DeepResNet<4, 6, 128, 32> {};
static_assert(parameters_of<ResNet50>() == 25'557'032);
static_assert(parameters_of<ResNet101>() == 44'549'160);
static_assert(parameters_of<ResNet152>() == 60'192'808);
static_assert(parameters_of<WideResNet50>() == 68'883'240);
static_assert(parameters_of<WideResNet101>() == 126'886'696);
static_assert(parameters_of<ResNeXt50>() == 25'028'904);

/// Norm and activation come first, and the shortcut is of what they make where channels change.
template <int C, int Steps>
using Widen = Seq<BatchNorm, ReLU,
                  SumOf<Seq<Conv2d<C, 3, Stride<Steps>, Padding<1>, NoBias>, BatchNorm, ReLU,
                            Conv2d<C, 3, Padding<1>, NoBias>>,
                        Conv2d<C, 1, Stride<Steps>, NoBias>>>;
template <int C>
using Keep = Residual<BatchNorm, ReLU, Conv2d<C, 3, Padding<1>, NoBias>, BatchNorm, ReLU,
                      Conv2d<C, 3, Padding<1>, NoBias>>;

/// WRN-Depth-K for CIFAR.
template <int Depth, int K, int Classes>
struct WideResNet : Model<Input<32, 32, 3>, Conv2d<16, 3, Padding<1>, NoBias>, Widen<16 * K, 1>,
                          Repeat<(Depth - 4) / 6 - 1, Keep<16 * K>>, Widen<32 * K, 2>,
                          Repeat<(Depth - 4) / 6 - 1, Keep<32 * K>>, Widen<64 * K, 2>,
                          Repeat<(Depth - 4) / 6 - 1, Keep<64 * K>>, BatchNorm, ReLU, MeanPool,
                          Linear<Classes>, CrossEntropy> {};

struct Wrn28x10 : WideResNet<28, 10, 10> {};
static_assert(parameters_of<Wrn28x10>() == 36'479'194);
static_assert(parameters_of<WideResNet<28, 10, 100>>() == 36'536'884);
static_assert(parameters_of<WideResNet<40, 2, 10>>() == 2'243'546);

}  // namespace models
