// SPDX-License-Identifier: BSL-1.0
//
// The kernel that draws tokens, threads being threads, under ThreadSanitizer.
#define FAKE_GPU_HAS_THREADS
#include <vector>

#include <pipe/infer/sampling_on_device.cuh>
#include <pipe/runtime/cuda/resources.cuh>

#include "device/device_arrays.hpp"

using namespace pp;

TEST_CASE("the draw of tokens has no races", "[races]") {
  constexpr std::size_t columns = 600;
  std::vector<float> x(columns);  // 120 of them are equal, in the middle of the others
  for (std::size_t i = 0; i < columns; ++i)
    x[i] = i % 5 == 0 ? 0.5f : float(2 * laws::uniform(1, 2, i));
  cuda::stream const on;
  on_host::device_array<float> const logits(std::span<float const>(x), on);
  on_host::device_array<int> const tokens(1);
  auto const draw = [&](bool with_threads) {
    fake_gpu::uses_threads = with_threads;
    sampling::sample(logits.view(), {.top_k = 250}, 0, tokens.view(), on);
    REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
    return tokens.read();
  };
  auto const expected = draw(false);
  CHECK(draw(true) == expected);
}
