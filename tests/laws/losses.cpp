// SPDX-License-Identifier: BSL-1.0
//
// The laws for the losses: gradients are central differences, and cutting keeps the bits.
#include "catch.hpp"

#include "laws/every_layer.hpp"
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
  laws::obeys<Ends<With<CrossEntropy, LabelSmoothing<1, 10>>>>(4);
  laws::obeys<Ends<With<CrossEntropy, ZLoss<1, 10>, LabelSmoothing<3, 10>>>>(5);
}

TEST_CASE("losses with weights and further targets obey the laws", "[laws]") {
  laws::obeys<laws::EveryLoss<laws::Surprise>>(6);
  laws::gradients_are_differences<laws::EveryLoss<laws::Spread>>(7);
  laws::gradients_are_differences<laws::EveryLoss<laws::UnequalClasses>>(8);
  laws::gradients_are_differences<laws::EveryLoss<With<BCE, PosWeight<5, 2>, Reduction<Sum>>>>(9);
}
TEST_CASE("mini-batches of fewer samples keep the bits of a weighted mean", "[laws]") {
  using M = laws::EveryLoss<laws::UnequalClasses>;
  using one = Pipeline<M, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>>;
  using many = Pipeline<M, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>, Stages<3>>;
  laws::same_as_one_stage<one, many>(11, 3, 1);
}

namespace {

/// Three mini-batches and a step against a step on all of them.
template <class Loss>
void accumulates(bool with_an_empty_one) {
  using small =
      Pipeline<laws::EveryLoss<Loss>, FP64, PortableHost, MicroBatches<1>, MicroBatchSize<2>>;
  using large =
      Pipeline<laws::EveryLoss<Loss>, FP64, PortableHost, MicroBatches<3>, MicroBatchSize<2>>;
  small a;
  large b;
  laws::sample_batch<large> data(5);
  if (with_an_empty_one)  // the first two samples: nothing counts
    for (std::size_t i = 0; i < 2; ++i) data.labels[i] = typename large::label_type(-1);
  step_result last;
  for (std::size_t part = 0; part < 3; ++part) {
    auto batch = typename small::batch{
        std::span(data.inputs)
            .subspan(part * 2 * small::inputs_per_sample, 2 * small::inputs_per_sample),
        std::span(data.labels)
            .subspan(part * 2 * small::labels_per_sample, 2 * small::labels_per_sample)};
    for (int k = 1; k < small::model::graph.size.inputs; ++k) {
      std::size_t const each = std::size_t(2 * small::model::graph.inputs[k].form.elements());
      batch.named_numbers[k] = std::span(data.numbers[k]).subspan(part * each, each);
    }
    last = part < 2 ? a.accumulate(batch) : a.step(batch);
  }
  step_result const whole = b.step(data.view());
  CHECK(last.loss == Approx(whole.loss).epsilon(1e-12));
  CHECK(last.gradient_norm == Approx(whole.gradient_norm).epsilon(1e-12));
  CHECK(whole.gradient_norm > 0);
}

}  // namespace

TEST_CASE("accumulated mini-batches are one large one, whatever a loss counts", "[laws]") {
  accumulates<laws::UnequalClasses>(false);
  accumulates<laws::UnequalClasses>(true);
  accumulates<laws::Surprise>(false);
}
