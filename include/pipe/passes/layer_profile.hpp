// SPDX-License-Identifier: BSL-1.0
//
// Measured times of layers, and a profile: a type that has them as constants. write_profile writes
// one (plan/profile.hpp), and ByProfile cuts and plans by it.
#pragma once

#include <pipe/schedule/problem.hpp>

namespace pp::detail {

/// Measured times of a layer per micro-batch: of F, B and W.
///
/// units: nanoseconds
struct layer_time {
  long forward = 0, backward_input = 0, backward_weight = 0;
  constexpr long all() const { return forward + backward_input + backward_weight; }
  friend constexpr bool operator==(layer_time const&, layer_time const&) = default;
};

/// Whether a type has times of F for each of its layers; whether it has times of B and of W; and
/// whether, as the headers of version 0.1, it has one time for both.
template <class P>
concept has_forward_times = requires {
  requires P::layers > 0;
  requires sizeof(P::forward_nanoseconds) == P::layers * sizeof(long);
};
template <class P>
concept has_times_of_b_and_w = requires {
  requires sizeof(P::backward_input_nanoseconds) == P::layers * sizeof(long);
  requires sizeof(P::backward_weight_nanoseconds) == P::layers * sizeof(long);
};
template <class P>
concept has_times_of_both =
    requires { requires sizeof(P::backward_nanoseconds) == P::layers * sizeof(long); };

/// A profile: times of the layers of a model in nanoseconds per micro-batch.
template <class P>
concept layer_profile = has_forward_times<P> && (has_times_of_b_and_w<P> || has_times_of_both<P>);

/// time * part / all; 0 if all is 0. Computed in double, so that the product does not overflow.
constexpr long in_proportion(long time, long part, long all) {
  return all > 0 ? static_cast<long>(static_cast<double>(time) * static_cast<double>(part) /
                                     static_cast<double>(all))
                 : 0;
}

/// The times of a layer in profile P. One time for B and W is split in proportion to the estimates.
///
/// law: the sum of all three is that of the profile's times of the layer, whatever the estimates
template <layer_profile P>
constexpr layer_time time_in_profile(int layer, schedules::chunk_cost const& estimate = {}) {
  layer_time t{P::forward_nanoseconds[layer]};
  if constexpr (has_times_of_b_and_w<P>) {
    t.backward_input = P::backward_input_nanoseconds[layer];
    t.backward_weight = P::backward_weight_nanoseconds[layer];
  } else {
    long const both = P::backward_nanoseconds[layer];
    t.backward_weight = in_proportion(both, estimate.backward_weight,
                                      estimate.backward_input + estimate.backward_weight);
    t.backward_input = both - t.backward_weight;
  }
  return t;
}

/// The cost of a layer by its measured times. R is not measured: it is the share of F that the
/// estimates say.
constexpr schedules::chunk_cost cost_by_time(layer_time const& t,
                                             schedules::chunk_cost const& estimate) {
  schedules::chunk_cost c{t.forward, t.backward_input, t.backward_weight};
  c.recompute = in_proportion(t.forward, estimate.recompute, estimate.forward);
  return c;
}

}  // namespace pp::detail
