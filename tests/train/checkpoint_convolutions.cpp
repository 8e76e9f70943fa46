// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints of convolutions with batch norms: filters, which files have in PyTorch's order, their
// optimizer state, and running statistics go on bit for bit under another cut and schedule.
#include "catch.hpp"

#include "laws/resume_law.hpp"

using namespace pp;

namespace {

/// Dense, in groups, depthwise, transposed; each rule of running statistics, and one that stays.
struct Images : Model<Input<4, 5, 3>, Conv2d<4, 3, Padding<1>, NoBias>, BatchNorm, ReLU,
                      Residual<Conv2d<4, 3, Groups<4>, Padding<1>, NoBias>,
                               With<BatchNorm, Momentum<1, 2>, BiasedVariance>, Tanh>,
                      Frozen<BatchNorm>, Conv2d<6, Axes<2, 3>, Stride<2>, Groups<2>, NoBias>,
                      With<BatchNorm, NoAffine>, GELUTanh, ConvTranspose2d<4, 2, Stride<2>>,
                      MeanPool, Linear<3>, CrossEntropy> {};
template <class... More>
using Of = Pipeline<Images, PortableHost, AdamW, Averaging<9, 10>, MicroBatches<4>,
                    MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("convolutions and batch norms are resumed under another cut and schedule", "[train]") {
  using one = Of<>;
  using folded = Of<Stages<4>, ZeroBubbleV, HostThreads<2>, RecomputeAllButLast>;
  laws::resumes<one, folded>(1);
  laws::resumes<folded, one>();
}
