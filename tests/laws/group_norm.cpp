// SPDX-License-Identifier: BSL-1.0
//
// The laws of the norms of single samples: groups of channels, channels, and neighbouring channels.
#include "catch.hpp"

#include <vector>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

struct Net
    : Model<Input<2, 2, 3>, GroupNorm<3>, Linear<6>, Residual<GroupNorm<2>, Tanh>,
            With<InstanceNorm, WithAffine, Epsilon<1, 10>>, ReLU, Linear<20>,
            LocalResponseNorm<4, ResponseScale<3>, ResponsePower<3, 2>, ResponseOffset<2>>,
            InstanceNorm, SiLU, Linear<19>, GroupNorm<1, NoAffine>, GELUTanh, Linear<2>, MSE> {};
template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("norms of groups and of responses obey the laws", "[laws]") { laws::obeys<Net>(1); }

TEST_CASE("norms of samples have the bits of one stage", "[laws]") {
  laws::same_as_one_stage<Of<>, Of<Stages<3>, RecomputeAll, HostThreads<3>>>(5, 3, 2);
}
