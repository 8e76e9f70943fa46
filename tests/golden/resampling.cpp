// SPDX-License-Identifier: BSL-1.0
//
// Pools, upsampling and padding against PyTorch: outputs, loss and all gradients. The models are
// those of resampling_cases() in write_golden.py.
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class M>
void check(char const* name) {
  golden::check_in_two<M>("resampling", name);
}

struct Images : Model<Input<7, 6, 3>, Linear<4>, MaxPool2d<3, Stride<2>, Padding<1>, CeilMode>,
                      Linear<4>, UpsampleBilinear<2>, ReflectionPad<1, 2, 2, 1>,
                      AvgPool2d<Axes<3, 2>, Stride<2>, Padding<1>, CeilMode>, Linear<5>,
                      AdaptiveMaxPool2d<4, 5>, ReplicationPad<1>,
                      AvgPool2d<3, Stride<2>, Padding<1>, CeilMode, ExcludePadding>,
                      UpsampleBilinearTo<6, 9, AlignCorners>, UpsampleNearest<2>, Pad<1, -1, 0, 2>,
                      MaxPool2d<3, Stride<2, 3>, Padding<1>, Dilation<2>>, AdaptiveAvgPool2d<3, 4>,
                      FlattenChannelsFirst, Linear<3>, MSE> {};
struct Sequences
    : Model<Input<17, 3>, Linear<4>, MaxPool1d<3, Stride<2>, Padding<1>, Dilation<2>>, Linear<4>,
            UpsampleLinear1d<3, AlignCorners>, AvgPool1d<4, Stride<3>, Padding<2>>, Linear<4>,
            ReflectionPad1d<1, 2>, AdaptiveMaxPool1d<9>, ReplicationPad1d<2, 0>,
            UpsampleNearest1d<2>, Pad1d<1, -1>,
            AvgPool1d<3, Stride<2>, Padding<1>, CeilMode, ExcludePadding>, UpsampleLinear1d<2>,
            AdaptiveAvgPool1d<5>, Linear<2>, MSE> {};

}  // namespace

TEST_CASE("layers of images are PyTorch's", "[golden]") { check<Images>("images"); }
TEST_CASE("layers of sequences are PyTorch's", "[golden]") { check<Sequences>("sequences"); }
