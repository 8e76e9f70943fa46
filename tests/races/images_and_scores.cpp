// SPDX-License-Identifier: BSL-1.0
//
// Kernels of images and of attention with options of its scores, threads being threads, under
// ThreadSanitizer.
#include "races/races.hpp"

using namespace pp;
using races::has_no_races;

namespace {

/// Convolutions dense, depthwise, in groups and transposed, norms of a micro-batch, of samples, of
/// groups and of neighbours, and every kind of pool and of upsampling.
struct Images : Model<Input<9, 8, 3>, Conv2d<8, 3, Stride<2>, Padding<1>, NoBias>, BatchNorm, ReLU,
                      MaxPool2d<2, Stride<1>>, Conv2d<8, 3, Groups<8>, Padding<1>>, GroupNorm<2>,
                      UpsampleBilinear<2>, Conv2d<12, 3, Groups<2>>, LocalResponseNorm<3>,
                      ConvTranspose2d<6, 3, Stride<2>>, With<BatchNorm, SyncOver<1>>, AvgPool2d<3>,
                      UpsampleNearest<2>, AdaptiveMaxPool2d<5, 4>, AdaptiveAvgPool2d<3, 3>,
                      Reshape<Rest, 6>, MeanPool, Linear<5>, CrossEntropy> {};

struct Even {
  PIPE_HD static constexpr bool visible(int q, int k) { return (q - k) % 2 == 0; }
};
/// More positions than a tile has: some tiles are masked in part, some as a whole.
struct Scores
    : Model<Tokens<11, 80>, Embedding<8>,
            Residual<Attention<2, Window<9>, ALiBi, SoftCap<5>, QKNorm<>, KeyValueHeads<1>>>,
            Residual<Attention<1, Prefix<70>, Mask<Even>>>, Linear<11>, CrossEntropy> {
  static constexpr bool pads = true;
};

}  // namespace

TEST_CASE("kernels of images have no races", "[races]") {
  has_no_races<Pipeline<Images, on_host::Device, FP32, SGD, MicroBatchSize<2>>>();
  has_no_races<Pipeline<Images, on_host::Device, BF16, SGD, MicroBatchSize<2>>>();
}
TEST_CASE("kernels of attention with options of its scores have no races", "[races]") {
  has_no_races<Pipeline<Scores, on_host::Device, BF16, SGD, MicroBatchSize<1>>>();
}
