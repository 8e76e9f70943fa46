// SPDX-License-Identifier: BSL-1.0
//
// All runs of narrow layers in the programs of a pipeline.
#pragma once

#include <utility>

#include <pipe/backend/cuda/narrow_mlp/narrow_mlp.hpp>

namespace pp::cuda {

/// visit(kernels, first launch, how many): kernels is a narrow_mlp.
template <class P, class Programs, program Which, class Visit>
constexpr void for_each_run_of(Visit const& visit) {
  using runs = narrow_runs_of<source_of<P>, Programs, Which>;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (visit(typename runs::template kernels<I>{},
           Programs::template launches<Which>.items.items + runs::runs.items[I].first,
           runs::runs.items[I].count),
     ...);
  }(std::make_integer_sequence<int, runs::count>{});
}
template <class P, class Programs, class Visit>
constexpr void for_each_run_in(Visit const& visit) {
  for_each_run_of<P, Programs, program::forward>(visit);
  for_each_run_of<P, Programs,
                  Programs::splits_backward ? program::backward_input : program::backward>(visit);
}
template <class P, int S, class Visit>
constexpr void for_each_run_of_stage(Visit const& visit) {
  if constexpr (P::some_keep)
    for_each_run_in<P, typename P::passes::template programs<S, false>>(visit);
  if constexpr (P::some_drop)
    for_each_run_in<P, typename P::passes::template programs<S, true>>(visit);
}
/// P: a compiled pipeline.
template <class P, class Visit>
constexpr void for_each_narrow_run(Visit const& visit) {
  [&]<int... S>(std::integer_sequence<int, S...>) {
    (for_each_run_of_stage<P, S>(visit), ...);
  }(std::make_integer_sequence<int, P::stages>{});
}

}  // namespace pp::cuda
