// SPDX-License-Identifier: BSL-1.0
//
// The loss on text that no training window overlaps.
#pragma once

#include <algorithm>
#include <vector>

#include <pipe/data/text.hpp>

/// Mean loss of a byte in nats, over at most `most` mini-batches of held-out text, evenly spread.
template <class Trainer>
double held_out_loss(Trainer& trainer, pp::text_data const& text, long most) {
  std::vector<int> tokens(Trainer::samples * Trainer::inputs_per_sample), labels(tokens.size());
  long const all = (text.held_out_windows() + Trainer::samples - 1) / Trainer::samples,
             batches = std::min(all, most);
  double loss = 0;
  long counted = 0;
  for (long b = 0; b < batches; ++b) {
    long const count = text.held_out(all * b / batches * Trainer::samples, tokens, labels);
    loss += double(count) * trainer.evaluate({tokens, labels});
    counted += count;
  }
  return loss / double(counted);
}
