// SPDX-License-Identifier: BSL-1.0
//
// The proof of a family inside the compiler, without flags: each question in a constant of its own.
#pragma once

#include <pipe/schedule.hpp>

namespace proofs {

template <class Policy, int P, int M>
struct proved {
  static constexpr pp::schedules::problem<> work{
      P, pp::schedules::chunks_for(Policy::where, P, Policy::chunks_per_rank), M, 1,
      pp::schedules::same_cost{{3, 2, 4}}};
  static constexpr auto table = pp::schedules::make_table<Policy, P, M>(work);
  static constexpr bool shape = check_shape(work, table).ok();
  static constexpr bool complete = check_complete(work, table).ok();
  static constexpr bool order = check_order(work, table).ok();
  static constexpr bool resources = check_resources(work, table).ok();
  static constexpr bool progress = check_progress(work, table).ok();
  static constexpr auto when = pp::schedules::simulate(work, table);
};

template <class Policy, int P = 8, int M = 32>
constexpr bool is_proved() {
  using of = proved<Policy, P, M>;
  return of::shape && of::complete && of::order && of::resources && of::progress &&
         of::when.complete;
}

}  // namespace proofs
