// SPDX-License-Identifier: BSL-1.0
//
// Lets a trained model write: the next byte is drawn from the model's distribution, appended, and so on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <pipe/base/philox.hpp>

#include "printer.hpp"

/// An index with probability proportional to exp(logits / temperature); u is uniform in (0, 1).
inline int draw_index(std::span<float const> logits, double temperature, double u) {
  float const most = *std::max_element(logits.begin(), logits.end());
  auto const weight = [&](float logit) { return std::exp(double(logit - most) / temperature); };
  double total = 0;
  for (float const logit : logits) total += weight(logit);
  double left = u * total;
  for (std::size_t i = 0; i + 1 < logits.size(); ++i)
    if ((left -= weight(logits[i])) < 0) return int(i);
  return int(logits.size()) - 1;
}

/// Prints the prompt and `bytes` bytes that continue it; without a prompt it begins a new document.
///
/// law: a function of the trainer's parameters, the prompt and the seed only
template <class Trainer>
void write_on(Trainer& trainer, std::string const& prompt, long bytes, double temperature, std::uint64_t seed) {
  constexpr std::size_t context = Trainer::inputs_per_sample, vocabulary = Trainer::model::graph.inputs[0].vocabulary;
  constexpr std::uint64_t stream = std::uint64_t(1) << 62;
  std::string text = prompt.empty() ? std::string(1, '\0') : prompt;
  std::vector<int> tokens(Trainer::plan.micro_batch_size * context);  // the first sample is ours, the others stay zero
  std::vector<float> logits(tokens.size() * vocabulary);
  printer out;
  for (char const c : prompt) out.put(static_cast<unsigned char>(c));
  for (long i = 0; i < bytes; ++i) {
    std::size_t const known = std::min(text.size(), context);
    for (std::size_t t = 0; t < known; ++t) tokens[t] = static_cast<unsigned char>(text[text.size() - known + t]);
    trainer.forward(tokens, logits);
    float const u = pp::unit_uniform(pp::random_block(seed, stream, std::uint64_t(i)).word[0]);
    text += char(draw_index({logits.data() + (known - 1) * vocabulary, vocabulary}, temperature, double(u)));
    out.put(static_cast<unsigned char>(text.back()));
  }
  out.end();
  std::putchar('\n');
}
