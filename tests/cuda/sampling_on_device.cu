// SPDX-License-Identifier: BSL-1.0
//
// Tokens that a GPU draws: the host's tokens from the same logits, and texts whose logits stay in
// the GPU's memory.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include <pipe/infer/generate_on_device.cuh>

#include "cuda/device_laws.hpp"

using namespace pp;

namespace {

struct Gpt : Model<Tokens<37, 12>, Named<"table", Embedding<16>>, Positions,
                   Residual<LayerNorm, Attention<2>>, LayerNorm, Tied<"table">, CrossEntropy> {};
using Trainer = Pipeline<Gpt, Cuda, Stages<2>, MicroBatchSize<2>>;

// [sample]
/// A token for each row of logits, of which only the tokens come to the host, in pinned memory.
void draw_tokens(device_span<float const> logits, device_span<int> tokens, int* on_host,
                 cudaStream_t stream) {
  sampling::sample(logits, {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 1}, 0, tokens,
                   stream);
  cudaMemcpyAsync(on_host, tokens.data(), tokens.size() * sizeof(int), cudaMemcpyDeviceToHost,
                  stream);
}
// [/sample]

/// Rows in device memory, and their tokens by kernel and by the host.
void draws_as_the_host(int columns, detail::sampling_settings const& s, double size) {
  std::size_t const rows = 2, wide = std::size_t(columns);
  std::vector<float> x(rows * wide);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = float(size * laws::uniform(3, 5, i));
    if (i % 7 == 3) x[i] = float(int(x[i]));
    if (i % 11 == 5) x[i] = -std::numeric_limits<float>::infinity();
  }
  for (std::size_t r = 0; r < rows; ++r) x[r * wide + wide / 2] = float(size) / 2;
  cuda::device_buffer const logits(long(x.size() * sizeof(float))), tokens(8);
  std::vector<int> found(rows);
  cuda::check(cudaMemcpy(logits.data(), x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice),
              "logits of a test");
  for (std::uint64_t place = 0; place < 4; ++place) {
    sampling::sample(device_span<float const>(logits.as<float>(), x.size()), s, place,
                     device_span<int>(tokens.as<int>(), rows));
    cuda::check(cudaMemcpy(found.data(), tokens.data(), rows * sizeof(int), cudaMemcpyDeviceToHost),
                "tokens of a test");
    for (std::size_t r = 0; r < rows; ++r) {
      detail::sampling_settings of_row = s;
      of_row.seed += r;
      INFO("columns " << columns << ", temperature " << s.temperature << ", top-k " << s.top_k
                      << ", top-p " << s.top_p << ", place " << place << ", row " << r);
      CHECK(found[r] ==
            sampling::sample(std::span<float const>(x).subspan(r * wide, wide), of_row, place));
    }
  }
}

/// A forward pass over the window for every token, and a draw from its logits on the host.
std::vector<int> said_by_the_host(Trainer& trainer, std::vector<int> text, long tokens,
                                  detail::sampling_settings const& how) {
  std::size_t const context = 12, columns = 37;
  std::size_t first = text.size() > context ? text.size() - context : 0;
  std::vector<int> said, window(context);
  std::vector<float> logits(Trainer::outputs_per_sample);
  for (long i = 0; i < tokens; ++i) {
    if (text.size() - first > context) first = text.size() - context / 2;
    std::fill(window.begin(), window.end(), -1);
    std::copy(text.begin() + long(first), text.end(), window.begin());
    trainer.forward(window, logits);
    std::size_t const last = text.size() - first - 1;
    text.push_back(sampling::sample(std::span<float const>(logits).subspan(last * columns, columns),
                                    how, std::uint64_t(i)));
    said.push_back(text.back());
  }
  return said;
}

}  // namespace

TEST_CASE("a GPU draws the tokens that the host draws", "[gpu]") {
  for (int const columns : {1, 37, 700})
    for (double const temperature : {0.0, 1.0})
      for (int const top_k : {0, 5})
        for (double const top_p : {1.0, 0.7})
          draws_as_the_host(columns, {temperature, top_k, top_p, 17}, 4);
  draws_as_the_host(5000, {0.8, 40, 0.95, 5}, 5);
}

TEST_CASE("texts go on on a GPU as the host's draws would let them", "[gpu]") {
  Trainer trainer({.seed = 3});
  laws::disturb(trainer, 4, 0.5);
  // [generate]
  device_generator on(trainer, 2);  // two texts, in one micro-batch
  std::vector<std::vector<int>> const prompts{{1, 2, 3}, {5, 36, 0, 7, 1, 1, 2, 3, 5, 8}};
  auto const said = generate(on, prompts, {.tokens = 9, .sampling = {.top_k = 9, .seed = 8}});
  // [/generate]
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(said[k] == said_by_the_host(trainer, prompts[k], 9, {.top_k = 9, .seed = 8 + k}));
  CHECK(generate(on, prompts[0], {.tokens = 3, .sampling = {.temperature = 0}}) ==
        said_by_the_host(trainer, prompts[0], 3, {.temperature = 0}));
}

TEST_CASE("the page about rows of logits does what it says", "[gpu]") {
  cuda::stream const stream;
  cuda::device_buffer const zeros(2 * 100 * long(sizeof(float))), tokens(2 * long(sizeof(int)));
  cuda::pinned_buffer const here(tokens.bytes());
  cuda::check(cudaDeviceSynchronize(), "clearing of memory");
  draw_tokens({zeros.as<float>(), 200}, {tokens.as<int>(), 2}, here.as<int>(), stream);
  cuda::check(cudaStreamSynchronize(stream), "a draw of tokens");
  std::vector<float> const same(100);
  for (std::size_t r = 0; r < 2; ++r)
    CHECK(
        here.as<int>()[r] ==
        sampling::sample(same, {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 1 + r}, 0));
}
