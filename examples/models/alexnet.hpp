// SPDX-License-Identifier: BSL-1.0
//
// AlexNet: Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional neural
// networks, 2012.
#pragma once

#include "parts.hpp"

namespace models {

/// As published: groups where the two GPUs did not exchange, response norms, 60.97 million
/// parameters. One GPU's half of a layer is a group here.
struct AlexNet
    : Model<Input<227, 227, 3>,                                                    //
            Conv2d<96, 11, Stride<4>>, ReLU, LocalResponseNorm<5>,                 // (55, 55, 96)
            MaxPool2d<3, Stride<2>>,                                               //
            Conv2d<256, 5, Padding<2>, Groups<2>>, ReLU, LocalResponseNorm<5>,     // (27, 27, 256)
            MaxPool2d<3, Stride<2>>,                                               //
            Conv2d<384, 3, Padding<1>>, ReLU,                                      // (13, 13, 384)
            Conv2d<384, 3, Padding<1>, Groups<2>>, ReLU,                           //
            Conv2d<256, 3, Padding<1>, Groups<2>>, ReLU,                           //
            MaxPool2d<3, Stride<2>>, FlattenChannelsFirst,                         // (9216)
            Dropout<1, 2>, Linear<4096>, ReLU, Dropout<1, 2>, Linear<4096>, ReLU,  //
            Linear<1000>, CrossEntropy> {};

/// torchvision's, of Krizhevsky, One weird trick for parallelizing convolutional neural networks,
/// 2014: one tower of 64 filters first and 256 last, no response norms. Its parameters have
/// torchvision's names.
template <int F, int Hidden, int Classes = 1000, class Image = Input<224, 224, 3>>
struct AlexNetTower
    : Model<Image,
            Named<"features",
                  Seq<Conv2d<F, 11, Stride<4>, Padding<2>>, ReLU, MaxPool2d<3, Stride<2>>,  //
                      Conv2d<3 * F, 5, Padding<2>>, ReLU, MaxPool2d<3, Stride<2>>,          //
                      Conv2d<6 * F, 3, Padding<1>>, ReLU, Conv2d<4 * F, 3, Padding<1>>, ReLU,
                      Conv2d<4 * F, 3, Padding<1>>, ReLU, MaxPool2d<3, Stride<2>>>>,
            AdaptiveAvgPool2d<6>, FlattenChannelsFirst,  // (36 * 4 F)
            Named<"classifier", Seq<Dropout<1, 2>, Linear<Hidden>, ReLU, Dropout<1, 2>,
                                    Linear<Hidden>, ReLU, Linear<Classes>>>,
            CrossEntropy> {};

using AlexNetOneTower = AlexNetTower<64, 4096>;

}  // namespace models
