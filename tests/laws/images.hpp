// SPDX-License-Identifier: BSL-1.0
//
// Models of images, small enough for backends that run on stand-ins: one with every kind of
// convolution and of norm over pixels, and a vision Transformer with several losses.
#pragma once

#include <pipe/pipe.hpp>

namespace laws {

struct Images
    : pp::Model<pp::Input<9, 8, 3>, pp::Conv2d<8, 3, pp::Stride<2>, pp::Padding<1>, pp::NoBias>,
                pp::BatchNorm, pp::ReLU, pp::MaxPool2d<2, pp::Stride<1>>,
                pp::Conv2d<8, 3, pp::Groups<8>, pp::Padding<1>>, pp::GroupNorm<2>, pp::GELUTanh,
                pp::Residual<pp::Conv2d<16, 3, pp::Groups<2>, pp::Padding<1>>, pp::InstanceNorm,
                             pp::Tanh, pp::Conv2d<8, 1>>,
                pp::LocalResponseNorm<3>, pp::ConvTranspose2d<6, 3, pp::Stride<2>>,
                pp::With<pp::BatchNorm, pp::NoAffine>, pp::SiLU, pp::AvgPool2d<3>, pp::Flatten,
                pp::Linear<5>, pp::CrossEntropy> {};

/// Beside the class of an image, numbers of each patch and of its class token, and a class of their
/// mean with a weight: labels of every type, from a value of an earlier layer and from a late one.
struct Vision
    : pp::Model<pp::Input<6, 4, 3>, pp::Tanh, pp::PatchEmbedding<8, 2>, pp::ClassToken,
                pp::Positions, pp::Residual<pp::LayerNorm, pp::Attention<2, pp::NotCausal>>,
                pp::Stash<"rows">, pp::Residual<pp::Linear<16>, pp::GELUTanh, pp::Linear<8>>,
                pp::Stash<"late">, pp::FirstPosition, pp::Linear<5>,
                pp::Losses<pp::CrossEntropy,
                           pp::FurtherLoss<"patches", "rows", pp::LossWeight<1, 2>, pp::Linear<3>,
                                           pp::BCE>,
                           pp::FurtherLoss<"kind", "late", pp::MeanPool, pp::Linear<4>,
                                           pp::With<pp::CrossEntropy, pp::Weights<"weight">,
                                                    pp::LabelSmoothing<1, 10>>>>> {};

}  // namespace laws
