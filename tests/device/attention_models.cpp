// SPDX-License-Identifier: BSL-1.0
//
// Models with attention in all its forms through the CUDA kernel bodies.
#include "cuda/agreement.hpp"
#include "laws/attention_models.hpp"

using namespace pp;
using namespace laws::attention;

namespace {

struct Turned
    : Model<Tokens<11, 19>, Embedding<32>, Residual<RMSNorm, Attention<2, RoPE<>, NoBias>>,
            Attention<8, RoPE<100>, KeyValueHeads<2>, NotCausal>, Linear<11>, CrossEntropy> {};

}  // namespace

TEST_CASE("models with attention agree with the host on CUDA", "[cuda]") {
  on_host::agrees_with_the_host<Grouped, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<Turned, MicroBatches<2>, MicroBatchSize<2>, Stages<2>>();
}
TEST_CASE("models with attention to other values agree with the host on CUDA", "[cuda]") {
  on_host::agrees_with_the_host<Translates, MicroBatches<2>, MicroBatchSize<2>>();
  on_host::agrees_with_the_host<FixedKeys, MicroBatches<2>, MicroBatchSize<3>>();
  on_host::agrees_with_the_host<FixedQueries, MicroBatches<2>, MicroBatchSize<3>>();
}
TEST_CASE("models with padding agree with the host on CUDA", "[cuda]") {
  on_host::agrees_with_the_host<Padded, MicroBatches<2>, MicroBatchSize<3>>();
}
