// SPDX-License-Identifier: BSL-1.0
//
// Lets a trained model write: the next byte is drawn from the model's distribution, appended, and
// so on.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <pipe/infer/generate.hpp>
#ifdef __CUDACC__
#include <pipe/infer/generate_on_device.cuh>
#endif

#include "printer.hpp"

/// Prints the prompt and `bytes` bytes that continue it; without a prompt it begins a new document.
///
/// on_device: with logits that stay on the trainer's GPU, else on the host.
///
/// law: a function of the trainer's parameters, the prompt and the seed only
template <class Trainer>
void write_on(Trainer& trainer, std::string const& prompt, long bytes, double temperature,
              std::uint64_t seed, [[maybe_unused]] bool on_device = false) {
  printer out;
  std::vector<int> tokens;
  for (char const c : prompt) {
    out.put(static_cast<unsigned char>(c));
    tokens.push_back(static_cast<unsigned char>(c));
  }
  if (tokens.empty()) tokens.push_back(0);
  auto const end = [&] {
    out.end();
    std::putchar('\n');
  };
#ifdef __CUDACC__
  if constexpr (Trainer::compiled::backend::has_own_memory)
    if (on_device) {
      pp::device_generator on(trainer);
      pp::generate(on, tokens,
                   {.tokens = bytes, .sampling = {.temperature = temperature, .seed = seed}},
                   [&](int token) { out.put(static_cast<unsigned char>(token)); });
      return end();
    }
#endif
  // [generate]
  pp::generate(trainer, tokens,
               {.tokens = bytes, .sampling = {.temperature = temperature, .seed = seed}},
               [&](int token) { out.put(static_cast<unsigned char>(token)); });
  // [/generate]
  end();
}
