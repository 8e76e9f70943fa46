// SPDX-License-Identifier: BSL-1.0
//
// The values of a model's losses in a run.
#pragma once

#include <pipe/graph/further_loss.hpp>

namespace pp {

/// The value of each loss of a model, in the order of Trainer::loss_names: before LossWeight.
///
/// law: Trainer::loss_names.size() of them; none in an inference
struct loss_values {
  double items[detail::most_losses]{};
  int count = 0;

  constexpr loss_values() = default;
  constexpr loss_values(double const* values, int number) : count(number) {
    for (int i = 0; i < number; ++i) items[i] = values[i];
  }

  constexpr int size() const { return count; }
  constexpr double operator[](int i) const { return items[i]; }
  constexpr double const* begin() const { return items; }
  constexpr double const* end() const { return items + count; }
};

}  // namespace pp
