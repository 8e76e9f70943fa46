// SPDX-License-Identifier: BSL-1.0
//
// The laws for the losses: gradients are central differences, and cutting keeps the bits.
#include <catch2/catch.hpp>

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"

using namespace pp;

namespace {

template <class Loss>
struct Ends : Model<Input<2, 3>, Linear<7>, Tanh, Linear<19>, LayerNorm, Loss> {};

template <class Loss>
void obeys(std::uint64_t seed) {
  using exact = Pipeline<Ends<Loss>, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<3>>;
  laws::gradient_report const r = laws::compare_with_differences<exact>(seed);
  INFO("parameter " << r.worst_parameter);
  CHECK(r.worst < 1e-7);
  CHECK(r.smallest > 1e-6);
  using one = Pipeline<Ends<Loss>, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>>;
  laws::same_as_one_stage<one,
                          Pipeline<Ends<Loss>, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>, Stages<4>>>(
      seed, 2);
}

}  // namespace

TEST_CASE("losses obey the laws", "[laws]") {
  obeys<BCE>(1);
  obeys<Huber<>>(2);
  obeys<Huber<1, 3>>(3);
  obeys<CrossEntropyWith<LabelSmoothing<1, 10>>>(4);
  obeys<CrossEntropyWith<ZLoss<1, 10>, LabelSmoothing<3, 10>>>(5);
}
