// SPDX-License-Identifier: BSL-1.0
//
// A law that compares the library with itself is blind to what both sides share: here a pipeline
// trains like the plain trainer, over several steps on mini-batches of different sizes, with ties,
// skips and dropout.
#include "laws/plain_trainer.hpp"

#include "catch.hpp"

#include "laws/data.hpp"
#include "laws/random_model.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

template <class Input, class... L>
struct Net : Model<Input, L...> {};

/// Four steps on eight, five, four and one samples: micro-batches that are filled up, and some that
/// are empty.
template <class Loss, class Input, class... L>
void trains_plainly(std::uint64_t seed, auto... options) {
  using trainer = Pipeline<Net<Input, L..., Loss>, FP64, PortableHost, AdamW, MicroBatches<4>,
                           MicroBatchSize<2>, decltype(options)...>;
  using plain = laws::plain::trainer;
  trainer ours(
      {.seed = seed,
       .optimizer = {
           .learning_rate = plain::rate, .epsilon = plain::epsilon, .weight_decay = plain::decay}});
  plain reference(ours, seed);
  int const rows = int(trainer::model::graph.inputs[0].form.rows());
  double moved = 0;
  auto const before = laws::snapshot(ours).values;
  for (int step = 0; step < 4; ++step) {
    laws::sample_batch<trainer> data(seed + std::uint64_t(step));
    int const samples = trainer::samples - 2 * step - step % 2;
    data.inputs.resize(std::size_t(samples * trainer::inputs_per_sample));
    data.labels.resize(std::size_t(samples * trainer::labels_per_sample));
    double const expected =
        reference.step(detail::layers<L...>{}, data.inputs, data.labels, samples, rows);
    INFO("seed " << seed << ", step " << step << ", " << samples << " samples");
    CHECK(ours.step({data.inputs, data.labels}).loss == Approx(expected).epsilon(1e-10));
    auto const values = laws::snapshot(ours).values;
    auto const wanted = reference.values();
    REQUIRE(values.size() == wanted.size());
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      worst = laws::worse(worst, std::abs(values[i] - wanted[i]));
      moved = std::max(moved, std::abs(values[i] - before[i]));
    }
    CHECK(worst < 1e-8);
  }
  CHECK(moved > 0.01);
}

}  // namespace

TEST_CASE("a language model with a tied head, skips and dropout trains like the plain trainer",
          "[laws]") {
  trains_plainly<CrossEntropy, Tokens<11, 4>, Named<"table", Embedding<6>>, Positions,
                 Dropout<1, 10>, Stash<"begin">,
                 Repeat<2, Residual<LayerNorm, Attention<2>, Dropout<1, 5>>,
                        Residual<LayerNorm, Linear<9>, GELU, Linear<6>, Dropout<1, 4>>>,
                 Stash<"late">, Tanh, Linear<6>, Pop<"late">, Pop<"begin">, LayerNorm,
                 Tied<"table">>(3, Stages<5>{}, ZeroBubbleH1{}, RecomputeAllButLast{});
}
TEST_CASE("concatenated skips and norms train like the plain trainer", "[laws]") {
  trains_plainly<MSE, Input<3, 5>, Linear<6, NoBias>, Stash<"a">, RMSNorm, SiLU, Dropout<1, 2>,
                 Stash<"b">, Attention<3, NotCausal, NoBias>, Pop<"a", Concat>, Linear<6>, Tanh,
                 Pop<"b">, LayerNorm, Linear<2>>(4, Stages<3>{}, GPipe{});
}
/// Layers that a seed chose, inside a skip and between a table and itself as the head.
template <unsigned Seed>
void random_model_trains_plainly(auto... options) {
  trains_plainly<CrossEntropy, Tokens<7, 3>, Named<"table", Embedding<5>>, Dropout<1, 8>,
                 Stash<"begin">, typename laws::RandomLayers<Seed, 6>::type, Linear<5>,
                 Pop<"begin">, Tied<"table">>(Seed, options...);
}
TEST_CASE("random models train like the plain trainer", "[laws]") {
  random_model_trains_plainly<21>(Stages<4>{}, ZeroBubbleV{});
  random_model_trains_plainly<22>(Stages<3>{}, RecomputeAll{});
  random_model_trains_plainly<23>(Stages<2>{}, GPipe{}, HostThreads<2>{});
}
TEST_CASE("weights whose transposed copies are in panels train like the plain trainer", "[laws]") {
  trains_plainly<MSE, Input<3>, Linear<384>, Tanh, Linear<176>, Tanh, Linear<2>>(5, Stages<2>{},
                                                                                 HostThreads<3>{});
  trains_plainly<CrossEntropy, Tokens<400, 2>, Named<"table", Embedding<176>>, Tanh, Tied<"table">>(
      6, Stages<2>{});
}
