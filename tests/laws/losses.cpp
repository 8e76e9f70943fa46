// SPDX-License-Identifier: BSL-1.0
//
// The laws for the losses: gradients are central differences, and cutting keeps the bits.
#include <catch2/catch.hpp>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

template <class Loss>
struct Ends : Model<Input<2, 3>, Linear<7>, Tanh, Linear<19>, LayerNorm, Loss> {};

}  // namespace

TEST_CASE("losses obey the laws", "[laws]") {
  laws::obeys<Ends<BCE>>(1);
  laws::obeys<Ends<Huber<>>>(2);
  laws::obeys<Ends<Huber<1, 3>>>(3);
  laws::obeys<Ends<CrossEntropyWith<LabelSmoothing<1, 10>>>>(4);
  laws::obeys<Ends<CrossEntropyWith<ZLoss<1, 10>, LabelSmoothing<3, 10>>>>(5);
}
