// SPDX-License-Identifier: BSL-1.0
//
// The loss of narrow layers as part of their backward kernel, where the schedule allows it: a
// training step then launches neither the loss nor the layers before it, and all bits are those of
// separate kernels.
#include "device/chains_alike.hpp"
#include "../../examples/cart_pole/clipped.hpp"

using namespace pp;
using namespace on_host;

namespace {

template <class Loss>
struct Ends : Model<Input<24>, Linear<40>, ReLU, Linear<40>, GELUTanh, Linear<10>, Loss> {};
/// What is before the chain runs in forward.
struct Normed : Model<Input<3, 24>, LayerNorm, Linear<40>, Tanh, Dropout<1, 10>, Linear<9>, MSE> {};
/// Two heads, of which one is behind the loss of the other.
struct Several
    : Model<Input<24>, Linear<40>, ReLU, Stash<"early">, Linear<10>,
            Losses<MSE,
                   FurtherLoss<"kind", "early", Linear<16>, GELUTanh, Linear<6>, CrossEntropy>>> {};
/// Two losses of one value.
struct Same : Model<Input<24>, Linear<40>, ReLU, Linear<10>, Stash<"y">,
                    Losses<MSE, FurtherLoss<"sizes", "y", LossWeight<2>, MSE>>> {};
/// Stages of one width.
struct Even : Model<Input<32>, Linear<32>, ReLU, Linear<32>, ReLU, Linear<32>, ReLU, Linear<32>,
                    ReLU, Linear<32>, ReLU, Linear<32>, MSE> {};

template <class Trainer>
using last_programs =
    typename Trainer::compiled::passes::template programs<Trainer::compiled::stages - 1,
                                                          Trainer::compiled::some_drop,
                                                          typename Trainer::compiled::work::chains>;
template <class Trainer>
constexpr bool has_loss_in_backward = last_programs<Trainer>::has_loss_in_backward;

template <class M, class... Options>
void is_as_launches() {
  STATIC_REQUIRE(has_loss_in_backward<on_device<M, Options...>>);
  are_alike<on_device<M, Options...>, by_launches<M, Options...>>();
}

}  // namespace

TEST_CASE("which backward passes have the loss of narrow layers", "[cuda]") {
  using squares = Ends<MSE>;
  STATIC_REQUIRE(has_loss_in_backward<on_device<squares, MicroBatches<4>>>);
  STATIC_REQUIRE(has_loss_in_backward<on_device<squares, MicroBatches<4>, GPipe>>);  // one rank
  STATIC_REQUIRE(has_loss_in_backward<on_device<Even, MicroBatches<4>, Stages<2>>>);
  STATIC_REQUIRE(has_loss_in_backward<on_device<Even, MicroBatches<1>, Stages<2>, GPipe>>);
  // the last rank has all forwards first, and would only have more to do when others wait for it
  STATIC_REQUIRE_FALSE(has_loss_in_backward<on_device<Even, MicroBatches<4>, Stages<2>, GPipe>>);
  // B and W apart; the recompute policy has dropped what the chain would make
  STATIC_REQUIRE_FALSE(
      has_loss_in_backward<on_device<Even, MicroBatches<4>, Stages<2>, ZeroBubbleH1>>);
  STATIC_REQUIRE_FALSE(has_loss_in_backward<on_device<squares, MicroBatches<4>, RecomputeAll>>);
  // the loss does not read what a layer hands on
  struct Behind : Model<Input<24>, Linear<24>, ReLU, Linear<24>, Tanh, MSE> {};
  STATIC_REQUIRE_FALSE(has_loss_in_backward<on_device<Behind, MicroBatches<4>>>);

  // records have nothing, and logits are in scratch, for evaluation
  using programs = last_programs<on_device<squares, MicroBatches<4>>>;
  STATIC_REQUIRE(programs::layout.bytes.record == 0);
  STATIC_REQUIRE(programs::resolve<detail::program::forward>(
                     detail::value_operand(on_device<squares>::compiled::passes::logits))
                     .where == detail::region::scratch);
  STATIC_REQUIRE(programs::counts.trained[int(detail::program::forward)] == 0);
  STATIC_REQUIRE(programs::counts.launches[int(detail::program::forward)] == 2);
}

TEST_CASE("squared errors in backward have the bits of launches", "[cuda]") {
  is_as_launches<Ends<MSE>, FP32, MicroBatches<3>>();
  is_as_launches<Normed, BF16, MicroBatches<2>>();
}

TEST_CASE("several losses of narrow layers are launches of their own", "[cuda]") {
  STATIC_REQUIRE_FALSE(has_loss_in_backward<on_device<Several, FP32, MicroBatches<3>>>);
  are_alike<on_device<Several, FP32, MicroBatches<3>>,
            by_launches<Several, FP32, MicroBatches<3>>>();
  are_alike<on_device<Same, FP32, MicroBatches<3>>, by_launches<Same, FP32, MicroBatches<3>>>();

  // The same gradients as on the host, whose are central differences.
  using device = on_device<Same, FP32, MicroBatches<3>>;
  using host = Pipeline<Same, PortableHost, MicroBatchSize<35>, MicroBatches<3>>;
  device a({.seed = 5});
  host b({.seed = 5});
  laws::sample_batch<device> const data(6);
  a.gradients(data.view());
  b.gradients(data.template view<host>());
  auto const on_device_ones = a.parameters();
  auto const on_host_ones = b.parameters();
  for (std::size_t i = 0; i < on_host_ones.size(); ++i)
    for (std::size_t k = 0; k < on_host_ones[i].gradients.size(); ++k)
      CHECK(on_device_ones[i].gradients[k] ==
            Approx(on_host_ones[i].gradients[k]).margin(1e-5).epsilon(1e-4));
}

TEST_CASE("other losses in backward have the bits of launches", "[cuda]") {
  is_as_launches<Ends<With<CrossEntropy, ZLoss<1, 10>, LabelSmoothing<3, 10>, Weights<"weight">>>,
                 FP16, MicroBatches<2>>();
  is_as_launches<Ends<Clipped>, FP32, MicroBatches<2>>();
  is_as_launches<Ends<With<BCE, Weights<"weight">>>, BF16, MicroBatches<2>>();
}

TEST_CASE("stages and schedules keep the bits of a loss in backward", "[cuda]") {
  using one = on_device<Even, BF16, MicroBatches<4>>;
  are_alike<on_device<Even, BF16, MicroBatches<4>, Stages<2>>, one>();
  are_alike<on_device<Even, BF16, MicroBatches<4>, Stages<2>, GPipe>, one>();
}

TEST_CASE("a loss in backward that is not finite is found", "[cuda]") {
  using trainer = on_device<Ends<MSE>, FP32, MicroBatches<3>>;
  for (int const layer : {0, 2, 4}) {
    trainer t({.seed = 3});
    for (auto& p : t.parameters())
      if (p.layer == layer)
        for (float& x : p.values) x = 3e38f;
    t.parameters_changed();
    laws::sample_batch<trainer> const data(1);
    std::string found;
    try {
      t.step(data.view());
    } catch (not_finite const& e) {
      found = e.what();
    }
    CHECK(found.find("first appears in backward of micro-batch 0, stage 0, in one of layers 0 "
                     "(Linear<40>) to 4 (Linear<10>), which are one kernel") != std::string::npos);
  }
}

TEST_CASE("a step launches no loss that is in backward", "[cuda]") {
  using trainer = on_device<Ends<MSE>, FP32, MicroBatches<3>>;
  trainer t({.seed = 3});
  laws::sample_batch<trainer> const data(1);
  int launches = 0;
  t.watch(data.view(), [&](launch_seen const& seen) {
    ++launches;
    CHECK(seen.which == detail::program::backward);
    CHECK(seen.what->group >= trainer::compiled::groups);
    CHECK(seen.all_finite());
  });
  CHECK(launches == 3);
}
