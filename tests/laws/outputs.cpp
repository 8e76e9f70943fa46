// SPDX-License-Identifier: BSL-1.0
//
// The outputs of a model with several losses: each equals, bit by bit, the output of a model that
// is its chain alone.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "../../examples/cart_pole/clipped.hpp"
#include "laws/data.hpp"
#include "transport/messages.hpp"

using namespace pp;

namespace {

/// Chains from values of every stage, with values of their own, without layers, and of the input.
struct Several
    : Model<Input<3, 4>, Linear<6>, Tanh, Stash<"early">, Linear<5>, Stash<"late">, GELUTanh,
            Linear<3>,
            Losses<CrossEntropy,
                   FurtherLoss<"kind", "early", LossWeight<2>, Linear<8>, Tanh, Linear<4>,
                               CrossEntropy>,
                   FurtherLoss<"size", "late", Flatten, Linear<7>, Tanh, Linear<2>, Huber<>>,
                   FurtherLoss<"middle", "early", MSE>>> {};
struct First : Model<Input<3, 4>, Linear<6>, Tanh, Linear<5>, GELUTanh, Linear<3>, CrossEntropy> {};
struct Kind : Model<Input<3, 4>, Linear<6>, Tanh, Linear<8>, Tanh, Linear<4>, CrossEntropy> {};
struct Size
    : Model<Input<3, 4>, Linear<6>, Tanh, Linear<5>, Flatten, Linear<7>, Tanh, Linear<2>, Huber<>> {
};
struct Middle : Model<Input<3, 4>, Linear<6>, Tanh, MSE> {};

template <class M, class... Options>
using Trained = Pipeline<M, PortableHost, MicroBatches<3>, MicroBatchSize<2>, Options...>;

/// The outputs of a model with parameters `from[which...]` of another trainer.
template <class M, class From>
std::vector<float> alone(From& from, std::initializer_list<std::size_t> which,
                         std::span<float const> inputs) {
  Trained<M> one({.seed = 9});
  auto const source = from.parameters();
  auto target = one.parameters();
  REQUIRE(target.size() == which.size());
  std::size_t k = 0;
  for (std::size_t const i : which) {
    std::copy(source[i].values.begin(), source[i].values.end(), target[k].values.begin());
    ++k;
  }
  one.parameters_changed();
  return predict(one, inputs);
}

/// Samples of four outputs, one after the other.
struct outputs {
  std::vector<float> first, kind, size, middle;
  explicit outputs(std::size_t samples)
      : first(9 * samples), kind(12 * samples), size(2 * samples), middle(18 * samples) {}
};

template <class Trainer>
void gives_each_chain() {
  Trainer t({.seed = 4});
  laws::disturb(t, 5, 0.3);
  laws::sample_batch<Trainer> const data(6);
  t.step(data.view());
  std::vector<float> inputs;
  for (int copy = 0; copy < 2; ++copy)
    inputs.insert(inputs.end(), data.inputs.begin(), data.inputs.end());
  auto const first = alone<First>(t, {0, 1, 2, 3, 4, 5}, inputs),
             kind = alone<Kind>(t, {0, 1, 6, 7, 8, 9}, inputs),
             size = alone<Size>(t, {0, 1, 2, 3, 10, 11, 12, 13}, inputs),
             middle = alone<Middle>(t, {0, 1}, inputs);
  auto const begins_with = [](std::vector<float> const& all, std::vector<float> const& part) {
    return laws::same_numbers(std::span(all).first(part.size()), std::span(part));
  };
  for (std::size_t const samples :
       {std::size_t(Trainer::samples), std::size_t(5), std::size_t(1)}) {
    auto const some = std::span(inputs).first(12 * samples);
    typename Trainer::batch const batch{some, {}};
    outputs one(samples), all(samples);
    t.forward(some, one.first);
    CHECK(begins_with(first, one.first));
    t.template forward<"labels">(batch, all.first);
    CHECK(begins_with(first, all.first));
    t.template forward<"kind">(some, one.kind);
    CHECK(begins_with(kind, one.kind));
    t.template forward<"size">(some, one.size);
    CHECK(begins_with(size, one.size));
    t.template forward<"middle">(batch, one.middle);
    CHECK(begins_with(middle, one.middle));
    t.template forward<"size", "labels", "middle", "kind">(batch, all.size, all.first, all.middle,
                                                           all.kind);
    CHECK((all.first == one.first && all.kind == one.kind && all.size == one.size &&
           all.middle == one.middle));
  }
  std::size_t const odd = inputs.size() / 12 - 1;
  auto const some = std::span(inputs).first(12 * odd);
  CHECK(begins_with(size, predict<"size">(t, some)));
  outputs all(odd);
  predict<"labels", "kind">(t, typename Trainer::batch{some, {}}, all.first, all.kind);
  CHECK(begins_with(first, all.first));
  CHECK(begins_with(kind, all.kind));
}

}  // namespace

TEST_CASE("each loss has an output, which is that of its chain alone", "[laws]") {
  gives_each_chain<Trained<Several>>();
  gives_each_chain<Trained<Several, Stages<2>, OneFOneB, HostThreads<2>>>();
  gives_each_chain<Trained<Several, Stages<3>, ZeroBubbleH1>>();
  gives_each_chain<Trained<Several, Stages<3>, GPipe, RecomputeAll>>();
}
TEST_CASE("outputs are the same of accumulations, of messages and of ranks in turn", "[laws]") {
  gives_each_chain<Trained<Several, GradientAccumulation<2>, Messages, Stages<2>, RecomputeAll>>();
  gives_each_chain<Trained<Several, StageReplicas<1, 2>>>();
}

namespace {

/// Losses of one value, of which the first is not overwritten, and of the input.
struct Alike
    : Model<
          Input<2, 3>, Stash<"x">, Linear<5>, Tanh, Linear<3>, Stash<"y">,
          Losses<CrossEntropy, FurtherLoss<"again", "y", CrossEntropy>,
                 FurtherLoss<"flat", "y", Flatten, Linear<6>, MSE>, FurtherLoss<"own", "x", MSE>>> {
};

template <class Trainer>
void gives_what_is_stashed() {
  Trainer t({.seed = 3});
  laws::sample_batch<Trainer> const data(8);
  std::size_t const samples = Trainer::samples - 1;
  auto const inputs = std::span(data.inputs).first(6 * samples);
  std::vector<float> first(6 * samples), again(first), own(first);
  t.template forward<"labels", "again", "own">(inputs, first, again, own);
  CHECK(first == predict(t, inputs));
  CHECK(first == again);
  CHECK(laws::same_numbers(std::span<float const>(own), inputs));
}

}  // namespace

TEST_CASE("a chain without layers gives the value that is stashed", "[laws]") {
  gives_what_is_stashed<Trained<Alike>>();
  gives_what_is_stashed<Trained<Alike, Stages<3>, RecomputeAll>>();
}

TEST_CASE("outputs by name are of averages while these stand in", "[laws]") {
  using trainer = Trained<Several, SGD, Averaging<9, 10>, Stages<2>>;
  trainer t({.seed = 4});
  laws::sample_batch<trainer> const data(6);
  for (int step = 0; step < 3; ++step) t.step(data.view(), 0.3);
  std::vector<float> const before = predict<"kind">(t, data.inputs);
  t.swap_averages();
  std::vector<float> const averaged = predict<"kind">(t, data.inputs);
  CHECK(averaged == alone<Kind>(t, {0, 1, 6, 7, 8, 9}, data.inputs));
  t.swap_averages();
  CHECK(before != averaged);
  CHECK(before == predict<"kind">(t, data.inputs));
}

TEST_CASE("outputs have the size of what a chain makes", "[laws]") {
  using trainer = Trained<Several>;
  static_assert(trainer::outputs_per_sample_of<"labels"> == trainer::outputs_per_sample);
  static_assert(trainer::outputs_per_sample_of<"kind"> == 12);
  static_assert(trainer::outputs_per_sample_of<"size"> == 2);
  static_assert(Trained<Size>::outputs_per_sample_of<"labels"> == 2);
  trainer t;
  std::vector<float> inputs(24), first(18), size(4), wrong(5);
  CHECK_THROWS_WITH(t.forward<"size">(inputs, wrong),
                    "outputs \"size\": expected 4 numbers, got 5");
  CHECK_THROWS_WITH((t.forward<"size", "labels">(inputs, size, wrong)),
                    "outputs: expected 18 numbers, got 5");
  CHECK_THROWS_WITH((predict<"labels", "size">(t, inputs, first, wrong)),
                    "outputs \"size\": expected 4 numbers, got 5");
  t.forward<"size", "labels">(inputs, size, first);
}

namespace {

// [actor_critic]
/// A policy, and beside it the value of what is shown: both are layers over the same Linear<16>.
struct ActorCritic
    : Model<Input<4>, Linear<16>, Tanh, Stash<"seen">, Linear<4>,
            Losses<Clipped, FurtherLoss<"value", "seen", LossWeight<1, 2>, Linear<1>, MSE>>> {};
using Agent = Pipeline<ActorCritic, MicroBatches<2>, MicroBatchSize<32>, PortableHost, Adam>;

/// Which of four signs is shown? The right answer to sign s is worth s + 1. An advantage is what a
/// game has brought beyond the value of its sign. Returns the mean of rewards, at most 2.5.
double play_and_learn(Agent& agent, std::mt19937& bits) {
  constexpr std::size_t games = Agent::samples;
  std::vector<float> shown(4 * games), scores(4 * games), value(games);
  std::vector<float> old(games), reward(games), advantage(games);
  std::vector<int> answer(games);
  for (std::size_t g = 0; g < games; ++g) shown[4 * g + g % 4] = 1;
  agent.forward<"labels", "value">(shown, scores, value);  // one run
  double rewards = 0;
  for (std::size_t g = 0; g < games; ++g) {
    double chance[4], sum = 0;
    for (std::size_t a = 0; a < 4; ++a) sum += chance[a] = std::exp(double(scores[4 * g + a]));
    answer[g] = std::discrete_distribution<int>(chance, chance + 4)(bits);
    old[g] = float(std::log(chance[answer[g]] / sum));
    if (std::size_t(answer[g]) == g % 4) reward[g] = float(g % 4 + 1);
    advantage[g] = reward[g] - value[g];
    rewards += double(reward[g]);
  }
  Agent::batch b{shown, answer};
  b.set<"old">(old).set<"advantage">(advantage).set<"value">(reward);
  for (int pass = 0; pass < 4; ++pass) agent.step(b);
  return rewards / games;
}
// [/actor_critic]

}  // namespace

TEST_CASE("an actor learns by the values of its critic", "[laws]") {
  Agent agent({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  std::mt19937 bits(7);
  double const before = play_and_learn(agent, bits);
  double last = 0;
  for (int round = 0; round < 100; ++round) last = play_and_learn(agent, bits);
  CHECK(before < 1.5);
  CHECK(last > 2.2);
  float const third[]{0, 0, 1, 0};
  std::vector<float> const value = predict<"value">(agent, third);
  CHECK(value[0] == Approx(3).margin(0.5));
}
