// SPDX-License-Identifier: BSL-1.0
//
// A model trained by CUDA kernel bodies agrees with the same model trained by the host's kernels,
// from the same weights; and whatever order the threads of a phase run in, the bits are the same.
#pragma once

#include "catch.hpp"

#include <cmath>
#include <vector>

#include "cuda/on_host.hpp"
#include "laws/data.hpp"

namespace on_host {

/// The largest difference, relative to the largest number of the two lists.
template <class T>
double difference(std::vector<T> const& a, std::vector<T> const& b) {
  REQUIRE(a.size() == b.size());
  double most = 0, scale = 1e-30;
  bool finite = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    finite = finite && std::isfinite(a[i]) && std::isfinite(b[i]);
    most = std::fmax(most, std::fabs(double(a[i]) - double(b[i])));
    scale = std::fmax(scale, std::fabs(double(a[i])));
  }
  return finite ? most / scale : HUGE_VAL;
}

/// `M` with these options on `Backend`: loss, every parameter's gradient, the model's output and
/// the parameters after three steps.
template <class Backend, class M, class... Options>
void agrees_with_the_host_on(double tolerance = 1e-5, std::uint64_t seed = 3) {
  using host = pp::Pipeline<M, pp::PortableHost, Options...>;
  using device = pp::Pipeline<M, Backend, Options...>;
  typename host::settings s{.seed = seed};
  typename device::settings d{.seed = seed};
  host expected(s);
  device found(d), again(d);
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<host> const data(seed + std::uint64_t(step));
    long const samples = host::samples - step;  // a partial micro-batch, too
    if (samples < 1) break;
    auto const view = data.view(samples);
    auto const same = data.template view<device>(samples);
    order = pp::cuda::thread_order::ascending;
    auto const a = expected.gradients(view);
    auto const b = found.gradients(same);
    CHECK(b.loss == Approx(a.loss).epsilon(tolerance));
    REQUIRE(b.losses.size() == a.losses.size());
    for (int i = 0; i < a.losses.size(); ++i)
      CHECK(b.losses[i] == Approx(a.losses[i]).epsilon(tolerance));
    auto const ours = laws::snapshot(found);
    auto const theirs = laws::snapshot(expected);
    CHECK(difference(theirs.gradients, ours.gradients) < tolerance);
    order =
        step % 2 == 0 ? pp::cuda::thread_order::descending : pp::cuda::thread_order::interleaved;
    again.gradients(same);
    CHECK(laws::same_numbers(laws::snapshot(again).gradients, ours.gradients));
    order = pp::cuda::thread_order::ascending;
    std::vector<float> x(std::size_t(samples * host::outputs_per_sample)), y(x.size());
    expected.forward(view, x);
    found.forward(same, y);
    CHECK(difference(x, y) < tolerance);
    CHECK(found.evaluate(same) == Approx(expected.evaluate(view)).epsilon(tolerance));
    expected.step(view);
    found.step(same);
    again.step(same);
  }
}

/// The same on the kernel bodies of all families.
template <class M, class... Options>
void agrees_with_the_host(double tolerance = 1e-5, std::uint64_t seed = 3) {
  agrees_with_the_host_on<Kernels, M, Options...>(tolerance, seed);
}

}  // namespace on_host
