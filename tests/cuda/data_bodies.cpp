// SPDX-License-Identifier: BSL-1.0
//
// The kernels over a program's arrays in device memory: checks, the divisor of a loss, conversions.
#include "catch.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <pipe/backend/cuda/update/check_values.hpp>
#include <pipe/backend/cuda/update/convert_values.hpp>
#include <pipe/base/half.hpp>
#include <pipe/nn/loss_option.hpp>

#include "cuda/run_bodies.hpp"
#include "laws/data.hpp"

using namespace pp;

namespace {

constexpr cuda::thread_order orders[] = {
    cuda::thread_order::ascending, cuda::thread_order::descending, cuda::thread_order::interleaved};

/// What the host makes of the results of all blocks, array by array.
std::vector<detail::checked_values> look(std::vector<detail::value_check> const& checks,
                                         cuda::thread_order order) {
  using kernel = cuda::check_values_kernel;
  std::vector<detail::checked_values> found(checks.size() * kernel::check_blocks, {-1, -1}), all;
  kernel::arguments a;
  a.arrays = int(checks.size());
  for (std::size_t i = 0; i < checks.size(); ++i) a.of[i] = checks[i];
  a.found = found.data();
  on_host::run_kernel<kernel>(a, order);
  for (std::size_t i = 0; i < checks.size(); ++i) {
    all.push_back({checks[i].count, 0});
    for (int b = 0; b < kernel::check_blocks; ++b) {
      auto const& x = found[i * kernel::check_blocks + std::size_t(b)];
      all.back().first = std::min(all.back().first, x.first);
      all.back().counted += x.counted;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("the first value out of range is found, and ids are counted", "[cuda]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (auto const order : orders)
    for (int const size : {1, 31, 256, 20000, 40001}) {
      INFO("size " << size);
      std::vector<int> ids(static_cast<std::size_t>(size));
      std::vector<float> numbers(ids.size());
      long counted = 0;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = int(i % 12) - 1;
        counted += ids[i] >= 0;
        numbers[i] = float(laws::uniform(7, 1, i));
      }
      detail::value_check const of_ids{ids.data(), size, true, -1, 10, 0, 0};
      detail::value_check const of_numbers{numbers.data(), size, false, 0, 0, -1, 1};
      auto const good = look({of_ids, of_numbers}, order);
      CHECK(good[0].first == size);
      CHECK(good[0].counted == counted);
      CHECK(good[1].first == size);
      for (int const at : {size - 1, size / 2, 0}) {
        auto const i = std::size_t(at);
        ids[i] = at % 2 == 0 ? 11 : -2;
        numbers[i] = at % 3 == 0 ? nan : at % 3 == 1 ? 1.5f : -1.5f;
        auto const bad = look({of_ids, of_numbers}, order);
        CHECK(bad[0].first == at);
        CHECK(bad[1].first == at);
      }
    }
}

TEST_CASE("weights are added as the host adds them", "[cuda]") {
  using classes = ClassWeights<3, 1, 0, 7>;
  for (auto const order : orders)
    for (int const rows : {1, 1023, 1024, 5000}) {
      std::vector<int> labels(static_cast<std::size_t>(rows));
      std::vector<float> weights(labels.size());
      for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = int(i % 5) - 1;
        weights[i] = float(1 + laws::uniform(7, 1, i));
      }
      auto const sum = [&](auto const& of) {
        double total = 0;
        for (std::size_t i = 0; i < labels.size(); ++i) total += of(i);
        return total;
      };
      double found = -1;
      on_host::run_kernel<cuda::sum_weights_kernel<true, classes>>(
          {labels.data(), weights.data(), rows, 4, &found}, order);
      CHECK(laws::same_bits(found, sum([&](std::size_t i) {
                              return labels[i] < 0
                                         ? 0.0
                                         : double(weights[i]) * classes::of<double>(labels[i]);
                            })));
      on_host::run_kernel<cuda::sum_weights_kernel<true, void>>(
          {labels.data(), weights.data(), rows, 4, &found}, order);
      CHECK(laws::same_bits(
          found, sum([&](std::size_t i) { return labels[i] < 0 ? 0.0 : double(weights[i]); })));
      on_host::run_kernel<cuda::sum_weights_kernel<true, classes>>(
          {labels.data(), nullptr, rows, 4, &found}, order);
      CHECK(found == sum([&](std::size_t i) {
              return labels[i] < 0 ? 0.0 : classes::of<double>(labels[i]);
            }));
      on_host::run_kernel<cuda::sum_weights_kernel<false, void>>(
          {nullptr, weights.data(), rows, 3, &found}, order);
      CHECK(laws::same_bits(found, sum([&](std::size_t i) { return double(weights[i]) * 3; })));
    }
}

namespace {

/// Both ways, from and to an array that begins `skip` elements after a multiple of 16 bytes.
template <class T>
void converts(cuda::extent size, std::size_t skip) {
  std::size_t const n = static_cast<std::size_t>(size);
  for (auto const order : orders) {
    std::vector<float> from(n + skip), back(n + skip, -7);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = float(4 * laws::uniform(7, 3, i));
    std::vector<T> values(n);
    on_host::run_kernel<cuda::flat_kernel<cuda::from_program<T>>>(
        {cuda::flat_ranges::over(size), {values.data(), from.data() + skip}}, order);
    on_host::run_kernel<cuda::flat_kernel<cuda::to_program<T>>>(
        {cuda::flat_ranges::over(size), {back.data() + skip, values.data()}}, order);
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(values[i].bits == T(from[i + skip]).bits);
      CHECK(back[i + skip] == float(values[i]));
    }
    for (std::size_t i = 0; i < skip; ++i) CHECK(back[i] == -7);
  }
}

}  // namespace

TEST_CASE("arrays of a program are rounded as the host rounds them", "[cuda]") {
  for (std::size_t const skip : {0u, 1u, 3u}) {
    converts<bf16>(4099, skip);
    converts<fp16>(4099, skip);
    converts<bf16>(1, skip);
  }
}
