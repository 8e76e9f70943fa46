// SPDX-License-Identifier: BSL-1.0
//
// Models with several losses: the laws, and that the loss is the sum of the losses of models with
// one each.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <pipe/metrics/loss_metrics.hpp>
#include <pipe/report/progress_line.hpp>

#include "laws/layer_laws.hpp"
#include "transport/messages.hpp"

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

/// Numbers and classes, from values in the middle of the model.
template <int Kinds, int Sizes>
struct Weighted
    : Model<Input<3, 4>, Linear<6>, Tanh, Stash<"early">, Linear<5>, Stash<"late">, GELUTanh,
            Linear<3>,
            Losses<CrossEntropy,
                   FurtherLoss<"kind", "early", LossWeight<Kinds>, Linear<4>, CrossEntropy>,
                   FurtherLoss<"size", "late", LossWeight<Sizes>, Flatten, Linear<2>, Huber<>>>> {};

/// Losses of one value: by itself, with weights of classes, in another shape, and through a layer.
struct Alike
    : Model<Input<2, 3>, Linear<5>, Tanh, Linear<4>, Stash<"y">,
            Losses<CrossEntropy,
                   FurtherLoss<"again", "y", LossWeight<3>,
                               With<CrossEntropy, ClassWeights<1, 2, 1, 3>, LabelSmoothing<1, 10>>>,
                   FurtherLoss<"flat", "y", Flatten, MSE>,
                   FurtherLoss<"more", "y", Linear<3>, MSE>>> {};
/// A loss of the input, which no parameter can make less.
struct OfInput : Model<Input<3>, Stash<"x">, Linear<4>, Tanh,
                       Losses<MSE, FurtherLoss<"more", "x", Linear<2>, MSE>,
                              FurtherLoss<"own", "x", LossWeight<2>, MSE>>> {};

template <class... More>
using Read = Pipeline<Reader, PortableHost, SGD, MicroBatches<3>, MicroBatchSize<2>,
                      GradientAccumulation<2>, More...>;
template <class M, class... More>
using Exact = Pipeline<M, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<3>, SGD, More...>;

}  // namespace

TEST_CASE("models with several losses obey the laws", "[laws]") {
  laws::gradients_hold<Exact<Reader>>(1);
  laws::gradients_hold<Exact<Weighted<3, 2>>>(2);
  laws::gradients_hold<Exact<Alike, Stages<3>, ZeroBubbleH1>>(7);
  laws::gradients_hold<Exact<OfInput>>(8);
  // Each a sum of two accumulations; in one process, in memory that is copied, and on ranks in
  // turn.
  using one = Read<>;
  using again = Read<Messages, GPipe, Stages<2>, RecomputeAll, HostThreads<2>>;
  using apart = Read<StageReplicas<1, 2>>;
  laws::same_as_one_stage<one, again>(3);
  laws::same_as_one_stage<one, apart>(4);
}

namespace {

/// The chains of Weighted, each as a model of its own.
struct First : Model<Input<3, 4>, Linear<6>, Tanh, Linear<5>, GELUTanh, Linear<3>, CrossEntropy> {};
struct Kind : Model<Input<3, 4>, Linear<6>, Tanh, Linear<4>, CrossEntropy> {};
struct Size : Model<Input<3, 4>, Linear<6>, Tanh, Linear<5>, Flatten, Linear<2>, Huber<>> {};

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
  auto const each = all.evaluate_losses(batch);
  REQUIRE(each.size() == 3);
  CHECK(std::fabs(each[0] - first) < 1e-12);
  CHECK(std::fabs(each[1] - kind) < 1e-12);
  CHECK(std::fabs(each[2] - size) < 1e-12);
  std::vector<double> outputs(std::size_t(samples) * 9);
  all.forward(inputs, outputs);  // without any labels
  CHECK(std::isfinite(outputs[0]));
  Exact<Weighted<0, 0>> none({.seed = 4});
  laws::copy_parameters(all, none);
  CHECK(
      std::fabs(none.evaluate(laws::sample_batch<trainer>(6).view<Exact<Weighted<0, 0>>>(samples)) -
                first) < 1e-12);
}

namespace {

/// Samples of a mini-batch of Weighted, from number `from` on.
template <class Trainer>
typename Trainer::batch part(typename Trainer::batch const& all, std::size_t from, std::size_t n) {
  typename Trainer::batch some{all.inputs.subspan(12 * from, 12 * n),
                               all.labels.subspan(3 * from, 3 * n)};
  return some.template set<"kind">(all.named_ids[1].subspan(3 * from, 3 * n))
      .template set<"size">(all.named_numbers[2].subspan(2 * from, 2 * n));
}

}  // namespace

TEST_CASE("each loss is the mean over its own terms in all mini-batches of a step", "[laws]") {
  using trainer = Exact<Weighted<3, 2>>;
  trainer parts({.seed = 4}), whole({.seed = 4});
  laws::sample_batch<trainer> data(6);
  // Terms of the first mini-batch: 9, 4 and 8; of the second one: 3, 5 and 4.
  data.labels = {0, 1, 2, 2, -1, 1, 0, -1, 1, 0, -1, 2, -1, 1, -1, -1, 0, 2};
  data.ids[1] = {-1, 1, -1, -1, -1, 2, -1, -1, 3, -1, 0, -1, 1, 2, -1, 3, 0, 1};
  auto const all = data.view(), a = part<trainer>(all, 0, 4), b = part<trainer>(all, 4, 2);

  SECTION("which are counted ahead") {
    for (int step = 0; step < 2; ++step) {
      auto const alone = whole.evaluate_losses(a);
      // [count]
      parts.count_terms(a), parts.count_terms(b);
      auto const first = parts.accumulate(a);
      auto const x = parts.step(b);
      // [/count]
      auto const y = whole.step(all);
      CHECK(first.losses[1] == Approx(alone[1]).epsilon(1e-12));
      for (int i = 0; i < 3; ++i) CHECK(x.losses[i] == Approx(y.losses[i]).epsilon(1e-12));
      CHECK(x.loss == Approx(y.loss).epsilon(1e-12));
      CHECK(x.loss == Approx(x.losses[0] + 3 * x.losses[1] + 2 * x.losses[2]).epsilon(1e-12));
      CHECK(x.gradient_norm == Approx(y.gradient_norm).epsilon(1e-12));
      auto const ours = laws::snapshot(parts).values, theirs = laws::snapshot(whole).values;
      for (std::size_t i = 0; i < ours.size(); ++i) CHECK(std::fabs(ours[i] - theirs[i]) < 1e-12);
    }
  }
  SECTION("or have one proportion") {
    parts.accumulate(a);
    auto const x = parts.step(a);
    CHECK(x.gradient_norm == Approx(whole.step(a).gradient_norm).epsilon(1e-12));
  }
  SECTION("or are refused") {
    parts.accumulate(a);
    CHECK_THROWS_AS(parts.count_terms(b), error);
    CHECK_THROWS_WITH(parts.step(b),
                      Catch::Contains("12 terms of the loss 'labels' and 9 of 'kind'"));
    CHECK(parts.accumulated() == 1);
    CHECK(parts.step(a).loss == Approx(whole.evaluate(a)).epsilon(1e-12));
    parts.count_terms(a), parts.count_terms(b);
    CHECK_THROWS_AS(parts.step(a), data_error);  // one of the two that were counted
  }
  SECTION("and so in a data set") {
    // Mini-batches of six samples and of four.
    auto const six = whole.evaluate_losses(all), four = whole.evaluate_losses(a);
    auto const append = [](auto& to, std::size_t n) {
      to.reserve(to.size() + n);
      to.insert(to.end(), to.begin(), to.begin() + long(n));
    };
    append(data.inputs, 48), append(data.labels, 12), append(data.ids[1], 12);
    append(data.numbers[2], 8);
    auto const found = evaluate_all_losses(whole, data.view(10));
    double const of_six[]{12, 9, 12}, of_four[]{9, 4, 8};
    for (int i = 0; i < 3; ++i)
      CHECK(found[i] ==
            Approx((six[i] * of_six[i] + four[i] * of_four[i]) / (of_six[i] + of_four[i]))
                .epsilon(1e-12));
    CHECK(evaluate_all(whole, data.view(10)) ==
          Approx(found[0] + 3 * found[1] + 2 * found[2]).epsilon(1e-12));
  }
}
TEST_CASE("losses have the names of their labels", "[laws]") {
  using trainer = Exact<Weighted<3, 2>>;
  static_assert(trainer::loss_names.size() == 3 && trainer::loss_names[0] == "labels" &&
                trainer::loss_names[1] == "kind" && trainer::loss_names[2] == "size");
  static_assert(Exact<Size>::loss_names.size() == 1);
  double const values[] = {1, 2, 3};
  step_result const r{.loss = 6, .losses = {values, 3}};
  auto const metrics = loss_metrics<trainer>(r);
  REQUIRE(metrics.size() == 3);
  CHECK(metrics[2].name == "loss/size");
  CHECK(metrics[2].value == 3);
  CHECK(loss_metric_names<trainer>()[1] == "loss/kind");
  CHECK(loss_metrics<Exact<Size>>(r).empty());
  CHECK(loss_metrics<trainer>({}).empty());  // of an inference
  CHECK(console::step_words({.loss = 13, .scalars = metrics})
            .starts_with("loss 13.0000 (labels 1.0000, kind 2.0000, size 3.0000)  rate"));
}

TEST_CASE("labels of a further loss are checked, and its layers have its name", "[laws]") {
  using trainer = Read<>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 0.5}});
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
