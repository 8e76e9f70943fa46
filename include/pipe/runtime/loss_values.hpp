// SPDX-License-Identifier: BSL-1.0
//
// The values of the losses of a model in a run.
#pragma once

#include <limits>

#include <pipe/graph/further_loss.hpp>

namespace pp {

/// The value of each loss of a model, in the order of Trainer::loss_names: before LossWeight.
///
/// law: size() is Trainer::loss_names.size(), or 0 in an inference
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

namespace detail {

/// Whether a loss that is trained has terms. counted(i): the sum of the weights of the terms of
/// loss i
template <class Counted>
constexpr bool has_terms(further_losses const& further, Counted const& counted) {
  bool any = counted(0) > 0;
  for (int i = 0; i < further.count; ++i)
    any = any || (further.items[i].weight > 0 && counted(i + 1) > 0);
  return any;
}
/// The loss of a mini-batch: the weighted sum of `each`, in which a loss without terms is 0. Since
/// the mean of no terms has no value, such a loss becomes NaN in `each` afterwards; the result is
/// NaN if no loss has terms.
template <class Counted>
constexpr double loss_of(loss_values& each, further_losses const& further, Counted const& counted) {
  constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
  double const sum = further.sum_of(each.items);
  for (int i = 0; i < each.count; ++i)
    if (!(counted(i) > 0)) each.items[i] = no_value;
  return has_terms(further, counted) ? sum : no_value;
}

}  // namespace detail

}  // namespace pp
