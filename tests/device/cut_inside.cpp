// SPDX-License-Identifier: BSL-1.0
//
// Models that are cut inside of their residuals, branches and attentions: chains of narrow layers
// in them are those of launches.
#include "device/chains_alike.hpp"

using namespace pp;
using namespace on_host;

namespace {

struct Chained : Model<Input<24>, Linear<40>, ReLU,
                       CutInside<Residual<Linear<40>, Tanh, Linear<40>>>, ReLU, Linear<10>, MSE> {};
struct Branched : Model<Input<24>, Linear<40>, ReLU,
                        CutInside<SumOf<Seq<Linear<16>, ReLU, Linear<24>>, Linear<24>>>, LayerNorm,
                        Linear<10>, CrossEntropy> {};
struct Blocks
    : Model<Tokens<11, 6>, Embedding<8>,
            CutInside<Residual<LayerNorm, Attention<2>>, Residual<Linear<9>, GELUTanh, Linear<8>>>,
            Linear<11>, CrossEntropy> {};

}  // namespace

TEST_CASE("chains in a model that is cut inside are as launches", "[cuda]") {
  are_alike<on_device<Chained, FP32, MicroBatches<2>>,
            by_launches<Chained, FP32, MicroBatches<2>>>();
  are_alike<on_device<Chained, BF16, MicroBatches<2>, Stages<3>, Cut<3, 4>>,
            by_launches<Chained, BF16, MicroBatches<2>, Stages<3>, Cut<3, 4>>>();
  are_alike<on_device<Branched, FP32, MicroBatches<2>>,
            by_launches<Branched, FP32, MicroBatches<2>>>();
}

TEST_CASE("blocks that are cut inside are as launches in 16 bits", "[cuda]") {
  are_alike<on_device<Blocks, BF16, MicroBatches<2>, Stages<4>>,
            by_launches<Blocks, BF16, MicroBatches<2>, Stages<4>>>();
}
