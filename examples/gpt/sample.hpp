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

#include "printer.hpp"

/// Prints the prompt and `bytes` bytes that continue it; without a prompt it begins a new document.
///
/// law: a function of the trainer's parameters, the prompt and the seed only
template <class Trainer>
void write_on(Trainer& trainer, std::string const& prompt, long bytes, double temperature,
              std::uint64_t seed) {
  printer out;
  std::vector<int> tokens;
  for (char const c : prompt) {
    out.put(static_cast<unsigned char>(c));
    tokens.push_back(static_cast<unsigned char>(c));
  }
  if (tokens.empty()) tokens.push_back(0);
  // [generate]
  pp::generate(trainer, tokens,
               {.tokens = bytes, .sampling = {.temperature = temperature, .seed = seed}},
               [&](int token) { out.put(static_cast<unsigned char>(token)); });
  // [/generate]
  out.end();
  std::putchar('\n');
}
