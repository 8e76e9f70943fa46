// SPDX-License-Identifier: BSL-1.0
//
// Memory full of signalling NaNs, and comparison of trainers by bits: for laws about values that a
// run must not read.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>

#include <pipe/pipe.hpp>

/// Fills the values, the scratch and the workspace of all ranks with signalling NaNs.
template <class Trainer>
void poison(Trainer& trainer) {
  using T = typename Trainer::element;
  auto const& map = Trainer::compiled::memory();
  auto const fill = [](char* from, long bytes) {
    T const bad = std::numeric_limits<T>::signaling_NaN();
    for (long i = 0; i + long(sizeof(T)) <= bytes; i += long(sizeof(T)))
      std::memcpy(from + i, &bad, sizeof(T));
  };
  auto const all = trainer.processes();
  for (int c = 0; c < Trainer::compiled::stages; ++c) {
    auto const& chunk = map.chunks[c];
    auto const& rank = map.rank[chunk.rank];
    char* const arena = all.parameters.engine->memory(c);
    fill(arena + map.holders[chunk.first_holder].values, chunk.sizes.values);
    fill(arena + rank.scratch,
         rank.workspace - rank.scratch + Trainer::compiled::threads * Trainer::compiled::workspace);
  }
}

inline bool same(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Bytes of parameters and of gradients in which two trainers differ.
template <class A, class B>
long differences(A& a, B& b) {
  auto const x = a.parameters(), y = b.parameters();
  long found = x.size() != y.size();
  for (std::size_t i = 0; i < x.size() && found == 0; ++i)
    for (std::size_t e = 0; e < x[i].values.size(); ++e)
      found += std::memcmp(&x[i].values[e], &y[i].values[e], sizeof x[i].values[e]) != 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t e = 0; e < x[i].gradients.size(); ++e)
      found += std::memcmp(&x[i].gradients[e], &y[i].gradients[e], sizeof x[i].gradients[e]) != 0;
  return found;
}
