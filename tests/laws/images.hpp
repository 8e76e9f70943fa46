// SPDX-License-Identifier: BSL-1.0
//
// A model of images with every kind of convolution and of norm over pixels, small enough for
// backends that run on stand-ins.
#pragma once

#include <pipe/pipe.hpp>

namespace laws {

struct Images
    : pp::Model<pp::Input<9, 8, 3>, pp::Conv2d<8, 3, pp::Stride<2>, pp::Padding<1>, pp::NoBias>,
                pp::BatchNorm, pp::ReLU, pp::MaxPool2d<2, pp::Stride<1>>,
                pp::Conv2d<8, 3, pp::Groups<8>, pp::Padding<1>>, pp::GroupNorm<2>, pp::GELU,
                pp::Residual<pp::Conv2d<16, 3, pp::Groups<2>, pp::Padding<1>>, pp::InstanceNorm,
                             pp::Tanh, pp::Conv2d<8, 1>>,
                pp::LocalResponseNorm<3>, pp::ConvTranspose2d<6, 3, pp::Stride<2>>,
                pp::BatchNormWith<pp::NoAffine>, pp::SiLU, pp::AvgPool2d<3>, pp::Flatten,
                pp::Linear<5>, pp::CrossEntropy> {};

}  // namespace laws
