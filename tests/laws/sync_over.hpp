// SPDX-License-Identifier: BSL-1.0
//
// The law of SyncOver: the bits of micro-batches of the size of its groups, whatever the size of
// micro-batches is.
#pragma once

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "laws/data.hpp"

namespace laws {

/// Only norms learn: the gradient of a matrix is a sum over a micro-batch, whose rounding depends
/// on its size.
template <class... Over>
struct Normed : pp::Model<pp::Input<2, 3>, pp::With<pp::BatchNorm, Over...>, pp::Tanh,
                          pp::Frozen<pp::Linear<5, pp::NoBias>>,
                          pp::With<pp::BatchNorm, pp::Momentum<1, 2>, pp::BiasedVariance, Over...>,
                          pp::ReLU, pp::Frozen<pp::Linear<9>>,
                          pp::Residual<pp::With<pp::BatchNorm, Over...>, pp::GELUTanh>,
                          pp::Frozen<pp::Linear<2>>, pp::MSE> {};

/// Mini-batches of 16, 11 and 3 samples: the last group may be partial, others absent.
template <class One, class Many>
void same_as_groups(std::uint64_t seed) {
  static_assert(One::samples == 16 && Many::samples == 16);
  One one({.seed = seed, .clip_norm = 0.1});
  Many many({.seed = seed, .clip_norm = 0.1});
  auto const start = snapshot(one).values;
  for (long samples : {16, 11, 3}) {
    sample_batch<One> const data(seed + std::uint64_t(samples));
    auto const ours = data.view(samples);
    auto const theirs = data.template view<Many>(samples);
    INFO(samples << " samples in micro-batches of " << Many::plan().micro_batch_size);
    one.gradients(ours);
    many.gradients(theirs);
    CHECK(same_numbers(snapshot(one).gradients, snapshot(many).gradients));
    auto const a = one.step(ours), b = many.step(theirs);
    CHECK(std::isfinite(a.loss));
    CHECK(a.loss == Approx(b.loss).epsilon(1e-6));
    CHECK(same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(same_numbers(snapshot(one).values, snapshot(many).values));
    std::vector<float> x(std::size_t(samples * One::outputs_per_sample)), y(x.size());
    one.forward(ours, x);
    many.forward(theirs, y);
    CHECK(same_numbers(x, y));
  }
  CHECK(!same_numbers(snapshot(one).values, start));
}

}  // namespace laws
