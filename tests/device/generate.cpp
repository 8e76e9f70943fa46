// SPDX-License-Identifier: BSL-1.0
//
// Text generation on the device that is a CPU: the tokens that the host draws from the logits of
// forward(), of which none comes to the host.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <pipe/infer/generate_on_device.cuh>

#include "device/device_arrays.hpp"
#include "message_of.hpp"

using namespace pp;

namespace {

using fake_gpu::gpu;

constexpr int context = 12, vocabulary = 37;
struct Gpt : Model<Tokens<vocabulary, context>, Named<"table", Embedding<16>>, Positions,
                   Residual<LayerNorm, Attention<2>>,
                   Residual<LayerNorm, Linear<20>, GELUTanh, Linear<16>>, LayerNorm, Tied<"table">,
                   CrossEntropy> {};
using Trainer = Pipeline<Gpt, on_host::Device, Stages<2>, MicroBatches<2>, MicroBatchSize<2>>;

Trainer made() {
  Trainer trainer({.seed = 3});
  laws::disturb(trainer, 4, 0.5);
  return trainer;
}

/// A forward pass over the window for every token, and a draw from its logits on the host.
std::vector<int> said_by_the_host(Trainer& trainer, std::vector<int> text, long tokens,
                                  detail::sampling_settings const& how, std::size_t keep) {
  std::size_t first = text.size() > context ? text.size() - context : 0;
  std::vector<int> said, window(context);
  std::vector<float> logits(Trainer::outputs_per_sample);
  for (long i = 0; i < tokens; ++i) {
    if (text.size() - first > context) first = text.size() - keep;
    std::fill(window.begin(), window.end(), -1);
    std::copy(text.begin() + long(first), text.end(), window.begin());
    trainer.forward(window, logits);
    std::size_t const last = text.size() - first - 1;
    text.push_back(
        sampling::sample(std::span<float const>(logits).subspan(last * vocabulary, vocabulary), how,
                         std::uint64_t(i)));
    said.push_back(text.back());
  }
  return said;
}

std::vector<std::vector<int>> const prompts{
    {1, 2, 3}, {5, 36, 0, 7, 1, 1, 2, 3, 5, 8, 13, 21, 34}, {4}};
detail::sampling_settings const random_draws{
    .temperature = 1.5, .top_k = 9, .top_p = 0.95, .seed = 8},
    greedy{.temperature = 0};

}  // namespace

TEST_CASE("texts go on as the host's draws from forward() would let them", "[device]") {
  Trainer trainer = made();
  device_generator on(trainer, 3);
  for (auto const prefers : {fake_gpu::preference::last, fake_gpu::preference::first}) {
    gpu.prefers = prefers;
    for (auto const& how : {random_draws, greedy})
      for (int const keep : {0, context}) {
        auto const found =
            generate(on, prompts, {.tokens = 15, .sampling = how, .keep_at_end = keep});
        for (std::size_t k = 0; k < prompts.size(); ++k) {
          auto of_text = how;
          of_text.seed += k;
          INFO("text " << k << ", temperature " << how.temperature << ", kept " << keep);
          CHECK(found[k] == said_by_the_host(trainer, prompts[k], 15, of_text,
                                             std::size_t(keep == 0 ? context / 2 : keep)));
        }
      }
  }
  gpu.prefers = fake_gpu::preference::awaited;
}

TEST_CASE("a text ends when an end token or its callback says so, and the others go on",
          "[device]") {
  Trainer trainer = made();
  device_generator on(trainer, 4);
  auto const said = generate(on, prompts, {.tokens = 16, .sampling = random_draws});
  CHECK(generate(on, prompts[0], {.tokens = 16, .sampling = random_draws}) == said[0]);
  std::vector<std::vector<int>> heard(3);
  generate(on, prompts, {.tokens = 16, .sampling = random_draws}, [&](int text, int token) {
    heard[std::size_t(text)].push_back(token);
    return text != 1 || heard[1].size() < 5;
  });
  CHECK(heard[0] == said[0]);
  CHECK(heard[1] == std::vector(said[1].begin(), said[1].begin() + 5));
  CHECK(heard[2] == said[2]);
  int const end = said[0][6];
  auto const ended = generate(on, prompts, {.tokens = 16, .sampling = random_draws, .end = end});
  for (std::size_t k = 0; k < 3; ++k) {
    auto const at = std::find(said[k].begin(), said[k].end(), end);
    CHECK(ended[k] == std::vector(said[k].begin(), at == said[k].end() ? at : at + 1));
  }
  std::vector<int> one;
  generate(on, prompts[0], {.tokens = 16, .sampling = random_draws}, [&](int token) {
    one.push_back(token);
    return one.size() < 2;
  });
  CHECK(one == std::vector(said[0].begin(), said[0].begin() + 2));
  CHECK(generate(on, prompts[0], {.tokens = 0}).empty());
}

TEST_CASE("only tokens come to the host, in pinned memory", "[device]") {
  Trainer trainer = made();
  generate(trainer, prompts[0], {.tokens = 1});  // allocates copies of the parameters
  long const before = long(gpu.memory.size());
  device_generator on(trainer, 3);
  long bytes = 0;
  for (auto const& [at, size] : gpu.memory) bytes += size;
  generate(on, prompts, {.tokens = 1});
  long after = 0;
  for (auto const& [at, size] : gpu.memory) after += size;
  CHECK(after == bytes);
  CHECK(long(gpu.memory.size()) == before + 3);
  auto const start = gpu.count;
  generate(on, prompts, {.tokens = 5});
  // The check of ids, as for every mini-batch in device memory, and three tokens.
  long const of_check =
      long(sizeof(detail::checked_values)) * cuda::check_values_kernel::check_blocks;
  CHECK(gpu.count.downloaded - start.downloaded == 5 * (of_check + 3 * long(sizeof(int))));
  CHECK(gpu.count.pageable == start.pageable);
}

TEST_CASE("a generator draws step by step", "[device]") {
  Trainer trainer = made();
  auto const said = said_by_the_host(trainer, prompts[0], 3, random_draws, 1);
  // [draw]
  device_generator on(trainer, 2);
  on.write(0, prompts[0]);
  std::vector<int> found;
  for (std::uint64_t i = 0; i < 3; ++i) found.push_back(on.draw(random_draws, i)[0]);
  // [/draw]
  CHECK(found == said);
  CHECK(on.position(0) == 6);
  CHECK(on.position(1) == 0);
  CHECK(on.draw(random_draws, 3)[1] == -1);
  CHECK(on.bytes() == 4 * (2 * context + 4 + 2 * context * vocabulary));
}

TEST_CASE("what a generator cannot continue it refuses, with the host's words", "[device]") {
  Trainer trainer = made();
  device_generator on(trainer, 2);
  std::vector<int> const prompt{1, 2};
  auto const message = [&](std::vector<int> const& from, detail::generation_settings const& s) {
    std::string const words = message_of([&] { generate(on, from, s); });
    CHECK(words == message_of([&] { generate(trainer, from, s); }));
    return words;
  };
  CHECK(message({}, {.tokens = 1}) ==
        "generate: expected a prompt of at least one token, got none");
  CHECK(message({1, 37}, {.tokens = 1}) == "token 37 at position 1 is not in [0, 37)");
  message(prompt, {.tokens = -1});
  message(prompt, {.tokens = 1, .end = 37});
  message(prompt, {.tokens = 1, .keep_at_end = 13});
  message(prompt, {.tokens = 1, .sampling = {.temperature = -1}});
  message(prompt, {.tokens = 1, .sampling = {.top_k = -1}});
  message(prompt, {.tokens = 1, .sampling = {.top_p = 0}});
  CHECK(message_of([&] { generate(on, prompts, {.tokens = 1}); }) ==
        "generate: expected 1 to 2 prompts, got 3");
  CHECK(message_of([&] { device_generator<Trainer>(trainer, 5); }) ==
        "device_generator: texts: 5 is not in [1, 4]");
  CHECK(message_of([&] { on.write(2, prompt); }) == "text 2 is not in [0, 2)");
  CHECK(message_of([&] { on.write(0, std::vector<int>(13)); }) ==
        "device_generator: expected at most 12 tokens, got 13");
  SECTION("logits that are not finite") {
    auto parameters = trainer.parameters();
    for (float& x : parameters[0].values) x = std::numeric_limits<float>::infinity();
    trainer.parameters_changed();
    CHECK_THROWS_AS(generate(on, prompt, {.tokens = 1}), not_finite);
    CHECK_THROWS_WITH(generate(on, prompt, {.tokens = 1}),
                      Catch::StartsWith("logit 0 of 37: expected a finite number or -infinity"));
  }
}

TEST_CASE("rows of logits have a token each", "[device]") {
  std::vector<float> x(3 * vocabulary);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(3 * laws::uniform(1, 2, i));
  cuda::stream const on;
  on_host::device_array<float> const logits(std::span<float const>(x), on);
  on_host::device_array<int> const tokens(3);
  sampling::sample(logits.view(), random_draws, 7, tokens.view(), on);
  REQUIRE(cudaStreamSynchronize(on) == cudaSuccess);
  for (std::size_t r = 0; r < 3; ++r) {
    auto of_row = random_draws;
    of_row.seed += r;
    CHECK(
        tokens.read()[r] ==
        sampling::sample(std::span<float const>(x).subspan(r * vocabulary, vocabulary), of_row, 7));
  }
  CHECK(message_of([&] {
          sampling::sample(logits.view().first(100), random_draws, 7, tokens.view());
        }) == "sample: 100 logits are no rows for 3 tokens");
}
