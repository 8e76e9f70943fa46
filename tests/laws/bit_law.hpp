// SPDX-License-Identifier: BSL-1.0
//
// The bit law: however a model is cut and scheduled, loss, gradients and updated parameters are
// those of one stage, bit for bit. And what only looks (evaluate, forward, gradients) changes
// nothing.
#pragma once

#include "catch.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "laws/data.hpp"

namespace laws {

/// A result, with the losses, which the trainer's next call replaces.
struct kept_result {
  double loss, gradient_norm;
  std::vector<double> losses;
  explicit kept_result(pp::step_result const& r) : loss(r.loss), gradient_norm(r.gradient_norm) {
    for (double const l : std::span<double const>(r.losses)) losses.push_back(l);
  }
  bool operator==(kept_result const& other) const {
    return same_bits(loss, other.loss) && same_bits(gradient_norm, other.gradient_norm) &&
           same_numbers(losses, other.losses);
  }
};
/// Everything that a user can see of a mini-batch, and of a step on it.
template <class T>
struct seen_numbers {
  kept_result alone;
  std::vector<T> gradients;
  kept_result step;
  std::vector<T> values;
  double evaluated;
  std::vector<T> outputs;
};
template <class Trainer>
seen_numbers<typename Trainer::element> look_and_step(Trainer& trainer,
                                                      typename Trainer::batch const& batch,
                                                      long samples) {
  kept_result alone(trainer.gradients(batch));
  auto gradients = snapshot(trainer).gradients;
  kept_result step(trainer.step(batch));
  auto values = snapshot(trainer).values;
  double const evaluated = trainer.evaluate(batch);
  std::vector<typename Trainer::element> outputs(
      std::size_t(samples * Trainer::outputs_per_sample));
  trainer.forward(batch, outputs);
  return {std::move(alone), std::move(gradients), std::move(step), std::move(values),
          evaluated,        std::move(outputs)};
}
template <class T>
void check_same(seen_numbers<T> const& a, seen_numbers<T> const& b, std::string const& where) {
  INFO(where);
  CHECK(a.alone == b.alone);
  CHECK(same_numbers(a.gradients, b.gradients));
  CHECK(std::isfinite(a.step.loss));
  CHECK(same_bits(a.step.loss, a.alone.loss));
  CHECK(a.step == b.step);
  CHECK(same_numbers(a.values, b.values));
  CHECK(same_bits(a.evaluated, b.evaluated));
  CHECK(same_numbers(a.outputs, b.outputs));
}
/// The cut and schedule of a trainer, for messages.
struct described_plan {
  std::string schedule;
  int stages, ranks, micro_batches;
};
template <class Trainer>
described_plan described() {
  auto const& plan = Trainer::plan();
  return {std::string(plan.schedule), plan.stage_count, plan.rank_count, plan.micro_batches};
}
inline std::string words(described_plan const& plan, int step, long samples) {
  return "step " + std::to_string(step) + " of " + plan.schedule + ", " +
         std::to_string(plan.stages) + " stages on " + std::to_string(plan.ranks) + " ranks, " +
         std::to_string(plan.micro_batches) + " micro-batches, " + std::to_string(samples) +
         " samples";
}

/// `steps` steps of both trainers, each on a mini-batch of its own, which has `fewer` samples less
/// than the one before; everything a user can see is compared after each.
template <class One, class Many>
void train_alike(One& one, Many& many, std::uint64_t seed, int steps, long fewer = 0) {
  for (int step = 0; step < steps; ++step) {
    sample_batch<One> const data(seed + std::uint64_t(step));
    long const samples = One::samples - step * fewer;
    check_same(look_and_step(one, data.view(samples), samples),
               look_and_step(many, data.template view<Many>(samples), samples),
               words(described<Many>(), step, samples));
  }
}

template <class One, class Many>
void train_alike_from_the_start(std::uint64_t seed, int steps, long fewer = 0) {
  typename One::settings a{.seed = seed, .clip_norm = 0.1};
  typename Many::settings b{.seed = seed, .clip_norm = 0.1};
  a.optimizer.learning_rate = b.optimizer.learning_rate = 0.02;
  One one(a);
  Many many(b);
  CHECK(same_numbers(snapshot(one).values, snapshot(many).values));
  train_alike(one, many, seed, steps, fewer);
}

template <class One, class Many>
void same_as_one_stage(std::uint64_t seed = 1, int steps = 3, long fewer = 0) {
  static_assert(One::plan().stage_count == 1);
  train_alike_from_the_start<One, Many>(seed, steps, fewer);
}

/// A trainer in micro-batches of two samples.
template <class M, class... More>
using Small = pp::Pipeline<M, pp::PortableHost, pp::AdamW, pp::MicroBatchSize<2>, More...>;

/// A small trainer with these options against one of one stage.
template <class M, int MicroBatchCount, class... More>
void options_keep_the_bits(int steps = 3) {
  same_as_one_stage<Small<M, pp::MicroBatches<MicroBatchCount>>,
                    Small<M, pp::MicroBatches<MicroBatchCount>, More...>>(5, steps);
}

/// One trainer takes steps only, the other looks around between them.
template <class Trainer>
void looking_changes_nothing(std::uint64_t seed = 1) {
  typename Trainer::settings const s{.seed = seed};
  Trainer plain(s), curious(s);
  std::vector<typename Trainer::element> outputs(
      std::size_t(Trainer::samples * Trainer::outputs_per_sample));
  for (int step = 0; step < 3; ++step) {
    sample_batch<Trainer> const data(seed + std::uint64_t(step)),
        other(seed + 50 + std::uint64_t(step));
    curious.evaluate(other.view());
    curious.forward(other.view(), outputs);
    curious.gradients(other.view());
    if (step == 1) curious.evaluate(data.view());
    auto const a = plain.step(data.view()), b = curious.step(data.view());
    CHECK(same_bits(a.loss, b.loss));
    CHECK(same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(same_numbers(snapshot(plain).values, snapshot(curious).values));
    CHECK(plain.steps() == curious.steps());
  }
}

}  // namespace laws
