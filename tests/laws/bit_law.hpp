// SPDX-License-Identifier: BSL-1.0
//
// The bit law: however a model is cut and scheduled, loss, gradients and updated parameters are
// those of one stage, bit for bit. And what only looks (evaluate, forward, gradients) changes
// nothing.
#pragma once

#include "catch.hpp"

#include <cmath>

#include "laws/data.hpp"

namespace laws {

/// `steps` steps of both trainers, each on a mini-batch of its own, which has `fewer` samples less
/// than the one before; everything a user can see is compared after each.
template <class One, class Many>
void train_alike(One& one, Many& many, std::uint64_t seed, int steps, long fewer = 0) {
  for (int step = 0; step < steps; ++step) {
    sample_batch<One> const data(seed + std::uint64_t(step));
    long const samples = One::samples - step * fewer;
    auto const ours = data.view(samples);
    auto const theirs = data.template view<Many>(samples);
    INFO("step " << step << " of " << Many::plan().schedule << ", " << Many::plan().stage_count
                 << " stages on " << Many::plan().rank_count << " ranks, "
                 << Many::plan().micro_batches << " micro-batches, " << samples << " samples");
    auto const a = one.gradients(ours), b = many.gradients(theirs);
    CHECK(same_losses(a, b));
    CHECK(same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(same_numbers(snapshot(one).gradients, snapshot(many).gradients));
    auto const c = one.step(ours), d = many.step(theirs);
    CHECK(std::isfinite(c.loss));
    CHECK(same_bits(c.loss, a.loss));
    CHECK(same_losses(c, d));
    CHECK(same_bits(c.gradient_norm, d.gradient_norm));
    CHECK(same_numbers(snapshot(one).values, snapshot(many).values));
    CHECK(same_bits(one.evaluate(ours), many.evaluate(theirs)));
    std::vector<typename One::element> x(std::size_t(samples * One::outputs_per_sample)),
        y(x.size());
    one.forward(ours, x);
    many.forward(theirs, y);
    CHECK(same_numbers(x, y));
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
