// SPDX-License-Identifier: BSL-1.0
//
// The few pipelines that the runtime's tests share: tiny, because these tests also run under
// sanitizers.
#pragma once

#include "laws/data.hpp"
#include "laws/eager.hpp"
#include "laws/schedules.hpp"

namespace tiny {

/// Stages of different shape, with whatever a boundary can hold: see tests/laws/bits.cpp.
struct Words : pp::Model<pp::Tokens<5, 3>, pp::Embedding<4>, pp::Positions,
                         pp::Residual<pp::LayerNorm, pp::Linear<4>>, pp::Attention<2>,
                         pp::Linear<3>, pp::ReLU, pp::Linear<5>, pp::CrossEntropy> {};
struct Numbers
    : pp::Model<pp::Input<3>, pp::Linear<4>, pp::Tanh, pp::Linear<6>, pp::Linear<2>, pp::MSE> {};

/// Stages with nothing to train, at the start and within; a stage with both.
struct PartlyFrozen
    : pp::Model<
          pp::Tokens<5, 3>, pp::Frozen<pp::Embedding<4>, pp::Positions>, pp::Linear<4>,
          pp::Group<pp::LearningRate<1, 2>, pp::Residual<pp::LayerNorm, pp::Frozen<pp::Linear<4>>>>,
          pp::Frozen<pp::Attention<2>>, pp::Linear<5>, pp::CrossEntropy> {};

using OneRank = pp::Pipeline<Words, pp::PortableHost, pp::AdamW, pp::MicroBatches<5>>;
using SevenRanks =
    pp::Pipeline<Words, pp::PortableHost, pp::AdamW, pp::MicroBatches<5>, pp::Stages<7>>;
/// These have four stages each, which they share.
using LateWeights = pp::Pipeline<Words, pp::PortableHost, pp::AdamW, pp::MicroBatches<5>,
                                 pp::Stages<4>, laws::LateWeights>;
using TwoChunks = pp::Pipeline<Words, pp::PortableHost, pp::AdamW, pp::MicroBatches<5>,
                               pp::Stages<4>, laws::ManyChunks<pp::schedules::placement::loop, 2>>;
using DownAndUp = pp::Pipeline<Words, pp::PortableHost, pp::AdamW, pp::MicroBatches<5>,
                               pp::Stages<4>, pp::ZeroBubbleV>;
using Regression = pp::Pipeline<Numbers, pp::PortableHost, pp::SGD, pp::MicroBatches<4>,
                                pp::MicroBatchSize<2>, pp::Stages<3>, pp::Cut<2, 3>>;
using FrozenStages =
    pp::Pipeline<PartlyFrozen, pp::PortableHost, pp::AdamW, pp::MicroBatches<3>, pp::Stages<6>>;
using ThreeThreads = pp::Pipeline<Words, laws::Eager<pp::PortableHost>, pp::HostThreads<3>,
                                  pp::AdamW, pp::MicroBatches<5>, pp::Stages<2>>;
template <class Optimizer>
using WithOptimizer =
    pp::Pipeline<PartlyFrozen, pp::PortableHost, Optimizer, pp::MicroBatches<3>, pp::Stages<3>>;

}  // namespace tiny
