// SPDX-License-Identifier: BSL-1.0
//
// Gradients of inputs: central differences of the loss, the same bits however the model is cut and
// scheduled, and nothing else changes.
#include "catch.hpp"

#include <cmath>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/centered.hpp"
#include "laws/eager.hpp"
#include "laws/schedules.hpp"

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

namespace {

struct Chain : Model<Input<3, 4>, Linear<6>, Tanh, Residual<LayerNorm, Attention<2>, Dropout<1, 4>>,
                     Repeat<4, Linear<6>, GELU>, MeanPool, Linear<3>, CrossEntropy> {};
/// The first input is read in many layers, of which the last is the loss's chain.
struct Often : Model<Named<"x", Input<4>>, Stash<"again">, Linear<4>, Tanh, Pop<"again", Multiply>,
                     Stash<"sum">, Linear<4>, GELU, Linear<4>, Pop<"sum">, MSE> {};
/// Two inputs of numbers, one of ids, and weights of the loss.
struct Several
    : Model<Named<"a", Input<2, 3>>, Linear<4>, Stash<"m">, Named<"ids", Tokens<7, 2>>,
            Embedding<4>, Pop<"m">, Stash<"n">, Named<"b", Input<2, 4>>, Pop<"n", Concat>,
            Linear<5>, SiLU, Flatten, Linear<2>, With<MSE, Weights<"w">>> {};
struct Image : Model<Input<6, 6, 2>, Conv2d<4, 3, Padding<1>>, BatchNorm, ReLU6, MaxPool2d<2>,
                     Conv2d<3, 3>, Flatten, Linear<2>, BCE> {};
struct Straight : Model<Input<5>, Frozen<Linear<5>>, Custom<laws::Centered>, Linear<5>, MSE> {};
/// The gradient of the second input is the value of the loss's own kernel.
struct Last : Model<Named<"a", Input<4>>, Linear<4>, Tanh, Linear<4>, Stash<"n">,
                    Named<"b", Input<4>>, Pop<"n">, MSE> {};
/// Inputs at the beginning of branches, each read twice.
struct Compared
    : Model<Named<"a", Input<4>>, Stash<"x">, PReLU, Linear<4>,
            ConcatOf<Identity, Named<"b", Input<4>>, DotOf<Linear<5>, Seq<Recall<"x">, Linear<5>>>>,
            Tanh, Linear<3>, Tanh, Pop<"x", Concat>, Linear<2>, MSE> {};

template <class M, class... More>
using Of = Pipeline<M, PortableHost, InputGradients, More...>;
template <class M, class... More>
using Without = Pipeline<M, PortableHost, More...>;

/// The greatest difference to a central difference of the loss, of every seventh number or so.
template <class Trainer, class Numbers>
double worst_difference(Trainer& t, Numbers& numbers, std::vector<double> const& found,
                        laws::sample_batch<Trainer> const& of, long samples) {
  double worst = 0, norm = 0;
  REQUIRE(found.size() == numbers.size() / Trainer::samples * std::size_t(samples));
  for (std::size_t i = 0; i < found.size(); i += 1 + found.size() / 40) {
    double const x = numbers[i], h = 1e-5;
    numbers[i] = x + h;
    double const above = t.gradients(of.view(samples)).loss;
    numbers[i] = x - h;
    double const below = t.gradients(of.view(samples)).loss;
    numbers[i] = x;
    double const difference = (above - below) / (2 * h);
    worst = std::fmax(worst, std::fabs(difference - found[i]));
    norm += difference * difference;
  }
  CHECK(norm > 1e-6);
  return worst;
}

template <class M, class... More>
void is_central_differences(long fewer = 0) {
  using Trainer = Of<M, FP64, More...>;
  Trainer t({.seed = 1});
  laws::disturb(t, 3, 0.3);
  laws::sample_batch<Trainer> data(4);
  long const samples = Trainer::samples - fewer;
  auto const found = t.input_gradients(data.view(samples));
  CHECK(worst_difference(t, data.inputs, found, data, samples) < 1e-8);
}

/// The gradients of inputs in training, and all that a user sees of it, of both trainers.
template <class One, class Many>
void gives_the_same_bits(long fewer = 0) {
  One one({.seed = 5});
  Many many({.seed = 5});
  for (int step = 0; step < 2; ++step) {
    laws::sample_batch<One> const data(std::uint64_t(step) + 7);
    long const samples = One::samples - fewer;
    auto const ours = one.input_gradients(data.view(samples));
    auto const theirs = many.input_gradients(data.template view<Many>(samples));
    INFO(Many::plan().schedule << ", " << Many::plan().stage_count << " stages, step " << step);
    CHECK(laws::same_numbers(ours, theirs));
    laws::train_alike(one, many, std::uint64_t(step) + 20, 1, fewer);
  }
}

}  // namespace

TEST_CASE("gradients of inputs are central differences", "[laws]") {
  is_central_differences<Chain, MicroBatches<3>, MicroBatchSize<2>, Stages<3>>(3);
  is_central_differences<Often, MicroBatches<2>, MicroBatchSize<3>, Stages<4>>();
  is_central_differences<Image, MicroBatches<2>, MicroBatchSize<3>, Stages<2>>();
  is_central_differences<Straight, MicroBatches<2>, MicroBatchSize<2>>(1);
}
TEST_CASE("gradients of several inputs are asked for by name", "[laws]") {
  using Trainer = Of<Several, FP64, MicroBatches<2>, MicroBatchSize<2>, Stages<3>>;
  Trainer t({.seed = 1});
  laws::disturb(t, 3, 0.3);
  laws::sample_batch<Trainer> data(4);
  auto const a = t.input_gradients<"a">(data.view()), b = t.input_gradients<"b">(data.view());
  CHECK(worst_difference(t, data.inputs, a, data, Trainer::samples) < 1e-8);
  CHECK(worst_difference(t, data.numbers[2], b, data, Trainer::samples) < 1e-8);
  std::vector<double> first(a.size()), second(b.size());
  step_result const r = t.input_gradients<"b", "a">(data.view(), second, first);
  CHECK(laws::same_bits(r.loss, t.gradients(data.view()).loss));
  CHECK(laws::same_numbers(a, first));
  CHECK(laws::same_numbers(b, second));
  CHECK(laws::same_numbers(a, t.input_gradients(data.view())));
  CHECK_THROWS_AS(t.input_gradients<"a">(data.view(), second), data_error);
  second.pop_back();
  CHECK_THROWS_AS((t.input_gradients<"a", "b">(data.view(), first, second)), data_error);
}
template <class... More>
void passes_through_all_stages() {
  using Trainer = Of<Last, FP64, MicroBatches<3>, MicroBatchSize<2>, More...>;
  Trainer t({.seed = 1});
  laws::sample_batch<Trainer> data(4);
  auto const b = t.template input_gradients<"b">(data.view());
  CHECK(worst_difference(t, data.numbers[1], b, data, Trainer::samples) < 1e-8);
  auto const a = t.input_gradients(data.view());
  CHECK(worst_difference(t, data.inputs, a, data, Trainer::samples) < 1e-8);
}
TEST_CASE("inputs of branches have gradients", "[laws]") {
  using Trainer = Of<Compared, FP64, MicroBatches<2>, MicroBatchSize<3>, Stages<3>>;
  Trainer t({.seed = 1});
  laws::disturb(t, 3, 0.3);
  laws::sample_batch<Trainer> data(4);
  auto const a = t.input_gradients<"a">(data.view()), b = t.input_gradients<"b">(data.view());
  CHECK(worst_difference(t, data.inputs, a, data, Trainer::samples) < 1e-8);
  CHECK(worst_difference(t, data.numbers[1], b, data, Trainer::samples) < 1e-8);
}
TEST_CASE("a gradient of an input that a loss makes passes through all stages", "[laws]") {
  passes_through_all_stages<>();
  passes_through_all_stages<Stages<3>, ZeroBubbleH1>();
}
TEST_CASE("gradients of inputs have the same bits under every schedule", "[laws]") {
  using one = Of<Chain, AdamW, MicroBatches<4>, MicroBatchSize<2>>;
  gives_the_same_bits<one, Of<Chain, AdamW, MicroBatches<4>, MicroBatchSize<2>, Stages<3>,
                              ZeroBubbleH1, RecomputeAll>>(1);
  gives_the_same_bits<one, Of<Chain, AdamW, MicroBatches<4>, MicroBatchSize<2>, Stages<4>,
                              Interleaved<2>, HostThreads<3>>>();
  gives_the_same_bits<one,
                      Of<Chain, AdamW, MicroBatches<4>, MicroBatchSize<2>, Stages<4>, Chimera>>(3);
  gives_the_same_bits<one,
                      Of<Chain, AdamW, MicroBatches<4>, MicroBatchSize<2>, StageReplicas<2, 1>>>();
  gives_the_same_bits<
      one, Of<Chain, AdamW, MicroBatches<4>, MicroBatchSize<2>, Stages<2>, Steady<OneFOneB>>>();
  // Of accumulations the sums of gradients differ, but no sample's own gradient.
  using summed = Of<Chain, AdamW, GradientAccumulation<2>, MicroBatches<2>, MicroBatchSize<2>>;
  one all({.seed = 5});
  summed parts({.seed = 5});
  laws::sample_batch<one> const data(3);
  CHECK(laws::same_numbers(all.input_gradients(data.view(7)),
                           parts.input_gradients(data.view<summed>(7))));
}
TEST_CASE("gradients of inputs change nothing else", "[laws]") {
  using Trainer = Of<Image, AdamW, MicroBatches<3>, MicroBatchSize<2>, Stages<2>>;
  using Plain = Without<Image, AdamW, MicroBatches<3>, MicroBatchSize<2>, Stages<2>>;
  Trainer t({.seed = 2});
  Plain plain({.seed = 2});
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<Trainer> const data(std::uint64_t(step) + 1), other(99);
    t.accumulate(data.view());
    plain.accumulate(data.view<Plain>());
    auto const before = laws::snapshot(t);
    auto const found = t.input_gradients(other.view());
    CHECK(laws::same_numbers(before.gradients, laws::snapshot(t).gradients));
    CHECK(laws::same_numbers(before.values, laws::snapshot(t).values));
    CHECK(t.accumulated() == 1);
    auto const a = t.step(data.view()), b = plain.step(data.view<Plain>());
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(t).values, laws::snapshot(plain).values));
  }
}
