// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches without a label that counts: a mean over nothing is NaN, as PyTorch has it, and no
// step is made of one. Where some other mini-batch, accumulation or loss of the step has a label,
// they change nothing.
#include <cmath>
#include <string>
#include <vector>

#include <pipe/checkpoint/kept_checkpoints.hpp>
#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>
#include <pipe/train/evaluate_all.hpp>

#include "catch.hpp"
#include "laws/data.hpp"
#include "message_of.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<3>, Linear<5>, Tanh, Linear<4>, CrossEntropy> {};
template <class... More>
using Of = Pipeline<Net, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>, More...>;
struct Both : Model<Input<3>, Linear<5>, Stash<"early">, Linear<4>,
                    Losses<CrossEntropy, FurtherLoss<"kind", "early", Linear<4>, CrossEntropy>>> {};

constexpr char const* refusal =
    "labels: none of this step counts, so it has no loss: leave its mini-batch out";

template <class Trainer>
laws::sample_batch<Trainer> without_labels(std::uint64_t seed) {
  laws::sample_batch<Trainer> data(seed);
  for (auto& label : data.labels) label = -1;
  return data;
}

}  // namespace

TEST_CASE("without a label losses are NaN, and no step is made", "[runtime]") {
  using Trainer = Of<Stages<2>>;
  Trainer trainer({.seed = 3}), same({.seed = 3});
  laws::sample_batch<Trainer> const some(1);
  auto const none = without_labels<Trainer>(2);
  CHECK(std::isnan(trainer.evaluate(none.view())));
  CHECK(std::isnan(trainer.evaluate_losses(none.view())[0]));
  step_result const r = trainer.gradients(none.view());
  CHECK((std::isnan(r.loss) && std::isnan(r.losses[0]) && r.gradient_norm == 0));
  CHECK(message_of<data_error>([&] { trainer.step(none.view()); }) == refusal);
  CHECK(trainer.steps() == 0);

  // It is accumulated, and counts nothing.
  CHECK(std::isnan(trainer.accumulate(none.view()).loss));
  CHECK(message_of<data_error>([&] { trainer.step(none.view()); }) == refusal);
  CHECK(trainer.accumulated() == 1);
  CHECK(laws::same_bits(trainer.step(some.view()).loss, same.step(some.view()).loss));
  CHECK(trainer.evaluate(some.view()) == Approx(same.evaluate(some.view())));
}
TEST_CASE("steps that overlap are not made without a label, either", "[runtime]") {
  using Trainer = Of<Stages<2>, Steady<>>;
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const some(1);
  auto const none = without_labels<Trainer>(2);
  std::vector<typename Trainer::batch> const all{some.view(), some.view(), none.view()};
  CHECK(message_of<data_error>([&] { trainer.train(all); }) == refusal);
  CHECK(trainer.steps() == 2);
}
TEST_CASE("an accumulation without a label changes nothing", "[runtime]") {
  using Trainer = Of<GradientAccumulation<2>>;
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> data(1);
  for (std::size_t i = data.labels.size() / 2; i < data.labels.size(); ++i) data.labels[i] = -1;
  double const loss = trainer.evaluate(data.view());
  CHECK(std::isfinite(loss));
  CHECK(trainer.step(data.view()).loss == Approx(loss));
}
TEST_CASE("a data set is evaluated by the labels that it has", "[runtime]") {
  using Trainer = Of<Stages<2>>;
  Trainer trainer({.seed = 3});
  laws::sample_batch<Trainer> const some(1);
  auto const none = without_labels<Trainer>(2);
  auto inputs = some.inputs;
  auto labels = some.labels;
  inputs.insert(inputs.end(), none.inputs.begin(), none.inputs.end());
  labels.insert(labels.end(), none.labels.begin(), none.labels.end());
  CHECK(evaluate_all(trainer, {inputs, labels}) == Approx(trainer.evaluate(some.view())));
  CHECK(std::isnan(evaluate_all(trainer, none.view())));
  CHECK(std::isnan(evaluate_all_losses(trainer, none.view())[0]));
}
TEST_CASE("one of several losses may have no label", "[runtime]") {
  using Trainer = Pipeline<Both, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>>;
  Trainer trainer({.seed = 3});
  auto const first = without_labels<Trainer>(1);
  loss_values const each = trainer.evaluate_losses(first.view());
  CHECK((std::isnan(each[0]) && std::isfinite(each[1])));
  CHECK(trainer.evaluate(first.view()) == each[1]);
  step_result const r = trainer.step(first.view());
  CHECK((r.loss == each[1] && std::isnan(r.losses[0]) && r.losses[1] == each[1]));

  auto none = without_labels<Trainer>(1);
  for (int& kind : none.ids[1]) kind = -1;
  CHECK(std::isnan(trainer.evaluate(none.view())));
  CHECK(std::isnan(evaluate_all(trainer, none.view())));
  CHECK(message_of<data_error>([&] { trainer.step(none.view()); }) == refusal);
  loss_values const all = evaluate_all_losses(trainer, first.view());
  CHECK((std::isnan(all[0]) && std::isfinite(all[1])));
}
TEST_CASE("a checkpoint whose loss is NaN is none of the best", "[runtime]") {
  CHECK(detail::checkpoints_to_keep({std::nan(""), 3, std::nan(""), 2}, 1, 1) ==
        std::vector{true, false, false, true});
}
