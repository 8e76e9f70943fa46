// SPDX-License-Identifier: BSL-1.0
//
// Frozen layers in chains of narrow ones, at any place: backward makes no gradient of their
// weights, and goes through them where a layer before them learns.
#include "device/chains_alike.hpp"

using namespace pp;
using namespace on_host;

namespace {

struct First : Model<Input<24>, Frozen<Linear<40>>, ReLU, Linear<40>, Tanh, Linear<10>, MSE> {};
struct Middle : Model<Input<24>, Linear<40>, ReLU, Frozen<Linear<24>>, ReLU, Linear<10>, MSE> {};
struct Last : Model<Input<24>, Linear<40>, ReLU, Linear<40>, ReLU, Frozen<Linear<10>>, MSE> {};
struct LastTwo : Model<Input<24>, Linear<40>, ReLU, Frozen<Linear<24>, Tanh, Linear<10>>, MSE> {};
struct AllButSecond : Model<Input<24>, Frozen<Linear<16>>, ReLU, Linear<24>, ReLU,
                            Frozen<Linear<24>, ReLU, Linear<24>, ReLU, Linear<10>>, CrossEntropy> {
};
struct BeforeHead : Model<Tokens<7, 4>, Named<"table", Embedding<6>>, Linear<6>, Tanh,
                          Frozen<Linear<6>>, Tied<"table">, CrossEntropy> {};
struct BeforeChain
    : Model<Input<24>, Frozen<Linear<40>>, LayerNorm, Linear<40>, ReLU, Linear<10>, MSE> {};

template <class Trainer>
using last_programs =
    typename Trainer::compiled::passes::template programs<Trainer::compiled::stages - 1,
                                                          Trainer::compiled::some_drop,
                                                          typename Trainer::compiled::work::chains>;

/// launches: of gradients, in chains of the last stage
template <class M, class... Options>
void is_as_launches(int launches) {
  using programs = last_programs<on_device<M, Options...>>;
  int found = 0;
  for (auto const& c : programs::template chain_kernels<detail::program::backward>)
    found += c.count - c.recomputed;
  CHECK(found == launches);
  are_alike<on_device<M, Options...>, by_launches<M, Options...>>();
}

}  // namespace

TEST_CASE("a chain has frozen layers at any place", "[cuda]") {
  is_as_launches<First, FP32, MicroBatches<2>>(3);
  is_as_launches<Middle, FP32, MicroBatches<2>>(4);
  is_as_launches<Last, FP32, MicroBatches<2>>(4);
}

TEST_CASE("a chain of gradients begins with several frozen layers", "[cuda]") {
  is_as_launches<LastTwo, FP32, MicroBatches<2>>(3);
  is_as_launches<AllButSecond, BF16, MicroBatches<2>>(4);
  is_as_launches<BeforeHead, FP32, MicroBatches<2>>(4);
}

TEST_CASE("a chain with the loss is behind a frozen layer", "[cuda]") {
  STATIC_REQUIRE(last_programs<on_device<BeforeChain, MicroBatches<2>>>::has_loss_in_backward);
  is_as_launches<BeforeChain, FP32, MicroBatches<2>>(4);
}
