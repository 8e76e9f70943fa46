// SPDX-License-Identifier: BSL-1.0
//
// A small residual network for pictures of 32 x 32 cells.
#pragma once

#include <pipe/pipe.hpp>

// [net]
/// Two convolutions and their shortcut, which halve the picture and have C channels.
template <int C>
using Down = pp::Seq<
    pp::SumOf<pp::Seq<pp::Conv2d<C, 3, pp::Stride<2>, pp::Padding<1>, pp::NoBias>, pp::BatchNorm,
                      pp::ReLU, pp::Conv2d<C, 3, pp::Padding<1>, pp::NoBias>, pp::BatchNorm>,
              pp::Seq<pp::Conv2d<C, 1, pp::Stride<2>, pp::NoBias>, pp::BatchNorm>>,
    pp::ReLU>;
/// The same in one size.
template <int C>
using Keep =
    pp::Seq<pp::Residual<pp::Conv2d<C, 3, pp::Padding<1>, pp::NoBias>, pp::BatchNorm, pp::ReLU,
                         pp::Conv2d<C, 3, pp::Padding<1>, pp::NoBias>, pp::BatchNorm>,
            pp::ReLU>;

template <int Channels, int Classes>
struct ResidualNet : pp::Model<pp::Input<32, 32, Channels>,                    //
                               pp::Conv2d<16, 3, pp::Padding<1>, pp::NoBias>,  // (32, 32, 16)
                               pp::BatchNorm, pp::ReLU,                        //
                               Down<32>,                                       // (16, 16, 32)
                               Down<64>, Keep<64>,                             // (8, 8, 64)
                               Down<128>, pp::MeanPool,                        // (128)
                               pp::Linear<Classes>, pp::CrossEntropy> {};
// [/net]
