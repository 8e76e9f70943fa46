// SPDX-License-Identifier: BSL-1.0
//
// A step of a small GPT on the executor of tests/ptx, whose kernels it mutates
// (tests/ptx/mutants.hpp): prints the bits of all that was computed. Its sums are long enough for
// every warp and every stage of shared memory to have a part in them, and a second micro-batch adds
// to them: a sum that is stored twice is then another.
#include <cstdio>
#include <cstring>
#include <vector>

#include <pipe/pipe.hpp>

#include "ptx/runtime.hpp"

using namespace pp;

namespace {

struct Gpt : Model<Tokens<160, 136>, Embedding<32>, Positions, Residual<LayerNorm, Attention<1>>,
                   Residual<LayerNorm, Linear<160>, GELUTanh, Linear<32>>, LayerNorm, Linear<160>,
                   CrossEntropy> {};

/// FNV-1a, of 64 bits.
struct hash {
  unsigned long long value = 14695981039346656037u;
  void add(float x) {
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    for (int k = 0; k < 4; ++k) value = (value ^ (bits >> (8 * k) & 255)) * 1099511628211u;
  }
};

template <class Precision>
void train() {
  using Trainer =
      Pipeline<Gpt, MicroBatchSize<4>, MicroBatches<2>, AdamW, Precision, OwnProducts, Cuda>;
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 1e-3}, .clip_norm = 1});
  std::vector<int> tokens(std::size_t(Trainer::samples * Trainer::inputs_per_sample)),
      next(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = int(math::random_block(1, 1, i).word[0] % 160);
  for (std::size_t i = 0; i < tokens.size(); ++i) next[i] = tokens[(i + 1) % tokens.size()];
  auto const done = trainer.step({tokens, next});
  hash all;
  for (auto const& p : trainer.parameters()) {
    for (float const x : p.gradients) all.add(x);
    for (float const x : p.values) all.add(x);
  }
  std::printf("%s loss %.17g norm %.17g bits %016llx\n", Precision::name, done.loss,
              done.gradient_norm, all.value);
}

/// A verdict on more parameters than a small model has.
void judge() {
  constexpr int terms = 1000;
  std::vector<double> numbers(3 * terms);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = double(math::random_block(2, 1, i).word[0] % 1024) / 1024;
  double* terms_on_device = nullptr;
  cuda::step_outcome *on_device = nullptr, found;
  cuda::run_state run, *run_on_device = nullptr;
  run.clip_norm = 1;
  std::size_t const bytes = numbers.size() * sizeof(double);
  cuda::check(cudaMalloc(&terms_on_device, bytes), "memory");
  cuda::check(cudaMalloc(&on_device, sizeof found), "memory");
  cuda::check(cudaMalloc(&run_on_device, sizeof run), "memory");
  cuda::check(cudaMemcpy(terms_on_device, numbers.data(), bytes, cudaMemcpyHostToDevice), "upload");
  cuda::check(cudaMemcpy(on_device, &found, sizeof found, cudaMemcpyHostToDevice), "upload");
  cuda::check(cudaMemcpy(run_on_device, &run, sizeof run, cudaMemcpyHostToDevice), "upload");
  cuda::launch_body<cuda::judge_kernel>({.squares = terms_on_device,
                                         .clamped = terms_on_device + terms,
                                         .parameters = terms,
                                         .losses = terms_on_device + 2 * terms,
                                         .rows = terms,
                                         .state = run_on_device,
                                         .out = on_device},
                                        nullptr);
  cuda::check(cudaMemcpy(&found, on_device, sizeof found, cudaMemcpyDeviceToHost), "download");
  std::printf("verdict %.17g %.17g %.9g\n", found.loss, found.norm, double(found.factor));
  cudaFree(terms_on_device);
  cudaFree(on_device);
  cudaFree(run_on_device);
}

}  // namespace

int main() {
  pipe_ptx_run_mutants();
  try {
    train<BF16>();
    judge();
    return 0;
  } catch (error const& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
