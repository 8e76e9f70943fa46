// SPDX-License-Identifier: BSL-1.0
//
// Models with tables through the CUDA kernel bodies of lookups and their gradients.
#include "cuda/agreement.hpp"

using namespace pp;

namespace {

struct Words
    : Model<Tokens<11, 5>, Embedding<7>, Positions, Tanh, Dropout<1, 5>, Linear<5>, CrossEntropy> {
  static constexpr bool pads = true;
};

}  // namespace

TEST_CASE("lookups agree with the host", "[cuda]") {
  on_host::agrees_with_the_host<Words, MicroBatches<3>, MicroBatchSize<2>>();
  struct Wide : Model<Tokens<300, 9>, Embedding<24>, GELU, Linear<8>, CrossEntropy> {};
  on_host::agrees_with_the_host<Wide, MicroBatches<2>, MicroBatchSize<5>>();
}
