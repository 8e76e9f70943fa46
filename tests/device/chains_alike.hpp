// SPDX-License-Identifier: BSL-1.0
//
// A law of chains: kernels that run several narrow layers make the bits of a kernel for each.
#pragma once

#include <vector>

#include "device/device.hpp"
#include "laws/data.hpp"

namespace on_host {

template <class M, class... Options>
using on_device = pp::Pipeline<M, Device, pp::MicroBatchSize<35>, Options...>;
template <class M, class... Options>
using by_launches = pp::Pipeline<M, DeviceWithoutChains, pp::MicroBatchSize<35>, Options...>;

/// Steps, accumulated gradients, evaluation and outputs of both are the same, to the bit, also with
/// mini-batches of fewer samples.
template <class Trainer, class Expected>
void are_alike() {
  Trainer found({.seed = 3, .clip_norm = 1});
  Expected expected({.seed = 3, .clip_norm = 1});
  laws::sample_batch<Trainer> const data(1);
  for (int const samples : {int(Trainer::samples), int(Trainer::samples) - 1, 36, 1}) {
    INFO(samples << " samples");
    auto const ours = data.view(samples);
    auto const theirs = data.template view<Expected>(samples);
    pp::step_result const a = found.step(ours), b = expected.step(theirs);
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(found).gradients, laws::snapshot(expected).gradients));
    double const x = found.evaluate(ours), y = expected.evaluate(theirs);
    CHECK(laws::same_bits(x, y));
  }
  found.accumulate(data.view());
  expected.accumulate(data.template view<Expected>());
  auto const a = found.step(data.view(2)), b = expected.step(data.template view<Expected>(2));
  CHECK(laws::same_bits(a.loss, b.loss));
  CHECK(laws::same_numbers(laws::snapshot(found).values, laws::snapshot(expected).values));
  std::vector<float> x(std::size_t(Trainer::samples * Trainer::outputs_per_sample)), y(x.size());
  found.forward(data.view(), x);
  expected.forward(data.template view<Expected>(), y);
  CHECK(laws::same_numbers(x, y));
}

}  // namespace on_host
