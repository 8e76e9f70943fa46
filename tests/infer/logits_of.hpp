// SPDX-License-Identifier: BSL-1.0
//
// The logits of a decoder that reads a text group by group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

/// The logits after each group of tokens of the given sizes by turns.
template <class Decoder>
std::vector<float> logits_of(Decoder& read, std::vector<int> const& tokens,
                             std::vector<std::size_t> const& sizes) {
  std::vector<float> all;
  read.rewind(0);
  for (std::size_t at = 0, turn = 0; at < tokens.size(); ++turn) {
    std::size_t const n = std::min(sizes[turn % sizes.size()], tokens.size() - at);
    auto const logits = read.read(std::span(tokens).subspan(at, n));
    all.insert(all.end(), logits.begin(), logits.end());
    at += n;
  }
  return all;
}
