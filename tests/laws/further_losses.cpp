// SPDX-License-Identifier: BSL-1.0
//
// Models with several losses: the laws, and that the loss is the sum of the losses of models with
// one each.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

// [model]
/// BERT's two tasks: a word in every place, and whether the second sentence follows the first.
struct Reader
    : Model<Tokens<11, 6>, Embedding<8>, Positions, Residual<LayerNorm, Attention<2, NotCausal>>,
            LayerNorm, Stash<"text">, Linear<11>,
            Losses<CrossEntropy, FurtherLoss<"follows", "text", LossWeight<1, 2>, FirstPosition,
                                             Linear<8>, Tanh, Linear<2>, CrossEntropy>>> {
  static constexpr bool pads = true;
};
// [/model]

/// Numbers and classes with weights as labels, from a value in the middle of the model.
struct Several
    : Model<Input<3, 4>, Linear<6>, Tanh, Stash<"early">, Linear<5>, Stash<"late">, GELU, Linear<3>,
            Losses<MSE,
                   FurtherLoss<"kind", "early", LossWeight<2>, Linear<4>,
                               CrossEntropyWith<ClassWeights<1, 2, 1, 3>, LabelSmoothing<1, 10>>>,
                   FurtherLoss<"size", "late", Flatten, Linear<2>, Huber<>>>> {};

}  // namespace

TEST_CASE("models with several losses obey the laws", "[laws]") {
  laws::gradients_are_differences<Reader>(1);
  laws::gradients_are_differences<Several>(2);
  using one = Pipeline<Reader, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>>;
  using again = Pipeline<Reader, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>, GPipe,
                         Stages<2>, RecomputeAll, HostThreads<2>>;
  using apart = Pipeline<Reader, PortableHost, SGD, MicroBatches<4>, MicroBatchSize<2>, Stages<4>,
                         laws::LateWeights>;
  laws::same_as_one_stage<one, again>(3);
  laws::same_as_one_stage<one, apart>(4);
}

namespace {

/// The same chains as in Several, each as a model of its own, under the names of Several's layers.
template <int Kinds, int Sizes>
struct Weighted
    : Model<Input<3, 4>, Linear<6>, Tanh, Stash<"early">, Linear<5>, Stash<"late">, GELU, Linear<3>,
            Losses<MSE, FurtherLoss<"kind", "early", LossWeight<Kinds>, Linear<4>, CrossEntropy>,
                   FurtherLoss<"size", "late", LossWeight<Sizes>, Flatten, Linear<2>, Huber<>>>> {};
struct First : Model<Input<3, 4>, Linear<6>, Tanh, Linear<5>, GELU, Linear<3>, MSE> {};
struct Kind : Model<Input<3, 4>, Linear<6>, Tanh, Linear<4>, CrossEntropy> {};
struct Size : Model<Input<3, 4>, Linear<6>, Tanh, Linear<5>, Flatten, Linear<2>, Huber<>> {};

template <class M>
using Exact = Pipeline<M, FP64, PortableHost, MicroBatches<3>, MicroBatchSize<2>, SGD>;

/// The trainer of one chain with parameters `from[which...]` of another trainer.
template <class M, class From>
double loss_alone(From& from, std::initializer_list<std::size_t> which, auto const& batch) {
  Exact<M> alone({.seed = 9});
  auto const source = from.parameters();
  auto target = alone.parameters();
  REQUIRE(target.size() == which.size());
  std::size_t k = 0;
  for (std::size_t const i : which) {
    std::copy(source[i].values.begin(), source[i].values.end(), target[k].values.begin());
    ++k;
  }
  alone.parameters_changed();
  return alone.evaluate(batch);
}

}  // namespace

TEST_CASE("the loss is the weighted sum of the means of all losses", "[laws]") {
  using trainer = Exact<Weighted<3, 2>>;
  trainer all({.seed = 4});
  laws::disturb(all, 5, 0.3);
  laws::sample_batch<trainer> data(6);
  data.ids[1][2] = data.ids[1][7] = -1;  // two positions of no kind
  long const samples = GENERATE(6, 5);   // the last micro-batch is full, or not
  auto const batch = data.view(samples);
  // Parameters in the order of the graph: three of the chain, then those of each further loss.
  auto const inputs = batch.inputs;
  double const first = loss_alone<First>(all, {0, 1, 2, 3, 4, 5},
                                         Exact<First>::batch{inputs, batch.labels}),
               kind = loss_alone<Kind>(all, {0, 1, 6, 7},
                                       Exact<Kind>::batch{inputs, batch.named_ids[1]}),
               size = loss_alone<Size>(all, {0, 1, 2, 3, 8, 9},
                                       Exact<Size>::batch{inputs, batch.named_numbers[2]});
  CHECK(std::fabs(all.evaluate(batch) - (first + 3 * kind + 2 * size)) < 1e-12);
  std::vector<double> outputs(std::size_t(samples) * 9);
  all.forward(inputs, outputs);  // without any labels
  CHECK(std::isfinite(outputs[0]));
  Exact<Weighted<0, 0>> none({.seed = 4});
  laws::copy_parameters(all, none);
  CHECK(
      std::fabs(none.evaluate(laws::sample_batch<trainer>(6).view<Exact<Weighted<0, 0>>>(samples)) -
                first) < 1e-12);
}

TEST_CASE("labels of a further loss are checked, and its layers have its name", "[laws]") {
  using trainer = Pipeline<Reader, PortableHost, MicroBatches<2>, Adam>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.02}});
  std::vector<int> words(12, 3), labels(12, 4), follows{1, 0};
  words[6] = 5;
  CHECK_THROWS_AS(t.step(trainer::batch{words, labels}), data_error);
  follows[1] = 2;
  CHECK_THROWS_AS(t.step(trainer::batch{words, labels}.set<"follows">(follows)), data_error);
  follows[1] = 0;
  double const before = t.step(trainer::batch{words, labels}.set<"follows">(follows)).loss;
  double after = 0;
  for (int i = 0; i < 60; ++i)
    after = t.step(trainer::batch{words, labels}.set<"follows">(follows)).loss;
  CHECK(after < before / 10);
  bool named = false;
  for (auto const& p : t.parameters()) named = named || p.name == "follows.1.weight";
  CHECK(named);
}
