// SPDX-License-Identifier: BSL-1.0
//
// What holds for any model that trains on a GPU.
#pragma once

#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/data.hpp"

namespace on_device {

/// Every launch on its own.
struct CudaWithoutChains : pp::Cuda {
  template <class Precision, class Products>
  using chains = pp::detail::no_chains;
};

/// Five micro-batches of two samples.
template <class M, class Backend, class... More>
using trainer =
    pp::Pipeline<M, Backend, pp::AdamW, pp::MicroBatches<5>, pp::MicroBatchSize<2>, More...>;

/// Schedule and the other options change no bit of what one stage makes on the device.
template <class M, class... Options>
void gives_the_bits_of_one_stage() {
  laws::train_alike_from_the_start<trainer<M, pp::Cuda>, trainer<M, pp::Cuda, Options...>>(7, 3, 3);
}

/// From the same weights, the losses are the host's up to `tolerance`, and a second run's to the
/// bit. A step that is skipped is done again.
template <class M, class... Options>
void losses_equal_the_hosts(double tolerance = 1e-4, int steps = 8) {
  using host = trainer<M, pp::PortableHost>;
  using device = trainer<M, pp::Cuda, Options...>;
  typename host::settings a{.seed = 5, .clip_norm = 1};
  typename device::settings b{.seed = 5, .clip_norm = 1};
  a.optimizer.learning_rate = b.optimizer.learning_rate = 0.01;
  host expected(a);
  device found(b), again(b);
  for (int step = 0; step < steps; ++step) {
    laws::sample_batch<host> const data(std::uint64_t(step) + 1);
    auto const x = expected.step(data.view());
    auto const step_of = [&](device& t) {
      auto r = t.step(data.template view<device>());
      while (r.skipped) r = t.step(data.template view<device>());
      return r;
    };
    auto const y = step_of(found), z = step_of(again);
    INFO("step " << step << " on " << found.runs_on());
    CHECK(y.loss == Approx(x.loss).epsilon(tolerance));
    CHECK(laws::same_bits(y.loss, z.loss));
  }
}

}  // namespace on_device

template <>
struct pp::detail::runtime_of<on_device::CudaWithoutChains> : pp::detail::runtime_of<pp::Cuda> {};
