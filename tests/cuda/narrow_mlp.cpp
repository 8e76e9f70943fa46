// SPDX-License-Identifier: BSL-1.0
//
// Chains of narrow layers as one kernel give the bits of their launches, in every number format.
#include "cuda/narrow_runs.hpp"

using namespace pp;
using cuda::product_format;

namespace {

struct Even : Model<Input<24>, Linear<40>, ReLU, Linear<64>, GELU, Linear<10>, MSE> {};
struct Odd : Model<Input<7>, Linear<5>, Tanh, Linear<33, NoBias>, SiLU, Linear<1>, MSE> {};

template <class M, int Samples, class... More>
using Trained = Pipeline<M, PortableHost, MicroBatches<2>, MicroBatchSize<Samples>, More...>;

template <class M, int Samples, class T, product_format F>
void both_ways(bool accumulate) {
  using trainer = Trained<M, Samples>;
  using P = narrow::source<trainer, T, F>;
  using programs = narrow::programs_of<trainer, 0>;
  narrow::are_their_launches<P, programs, program::forward, 1>();
  narrow::are_their_launches<P, programs, program::backward, 1>(accumulate);
}

}  // namespace

TEST_CASE("narrow layers in fp32", "[cuda]") {
  both_ways<Even, 150, float, product_format::fp32>(true);
  both_ways<Odd, 70, float, product_format::fp32>(false);
}
