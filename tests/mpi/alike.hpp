// SPDX-License-Identifier: BSL-1.0
//
// A pipeline over processes against one stage, which every process trains by itself, too.
#pragma once

#include "catch.hpp"

#include <cstdint>
#include <vector>

#include "mpi/between.hpp"
#include <pipe/pipe.hpp>

#include "laws/data.hpp"

namespace processes {

/// Whether the parameters and gradients that this process has are those of one stage, and the
/// memory is that of its ranks alone. Replicas that divide the updates have no complete gradients.
template <class One, class Many>
bool same_parameters(One& one, Many& many) {
  auto const all = one.parameters(), some = many.parameters();
  if (all.size() != some.size()) return false;
  auto const& plan = Many::plan();
  pp::transports::process_place const place = Between::transport::place(plan.rank_count);
  bool const has_gradients = plan.zero == 0 || (plan.zero == 1 && place.replicas == 1);
  std::size_t here = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (some[i].values.empty()) continue;
    if (all[i].index != some[i].index || !laws::same_numbers(all[i].values, some[i].values) ||
        (has_gradients && !laws::same_numbers(all[i].gradients, some[i].gradients)))
      return false;
    ++here;
  }
  bool owns_all = true;
  for (pp::stage_plan const& s : plan.stages)
    owns_all = owns_all && (s.parameters == 0 || place.has(s.rank));
  if (owns_all != (here == all.size())) return false;
  for (int r = 0; r < plan.rank_count; ++r)
    if (many.allocated_bytes(r) !=
        (place.has(r) ? plan.rank_bytes_of(r, place.replicas, place.replica) : 0))
      return false;
  return true;
}

/// Whether the parameters that this process has of two trainers are the same.
template <class A, class B>
bool same_values(A& a, B& b) {
  auto const some = a.parameters(), others = b.parameters();
  for (std::size_t i = 0; i < some.size(); ++i)
    if (!some[i].values.empty() && !others[i].values.empty() &&
        !laws::same_numbers(some[i].values, others[i].values))
      return false;
  return some.size() == others.size();
}

/// Three steps, each on a mini-batch with three samples less: a micro-batch with one sample, then
/// some with none. speed: of this process, for its share of accumulations
template <class One, class Many>
void trains_alike(double speed = 0) {
  static_assert(One::plan().stage_count == 1 && One::samples > 6);
  One one({.seed = 3, .clip_norm = 0.1});
  Many many({.seed = 3, .clip_norm = 0.1, .runtime = {.speed = speed}});
  INFO(Many::plan().schedule << ", " << Many::plan().stage_count << " stages on "
                             << Many::plan().rank_count << " ranks, process " << Between::process()
                             << " of " << Between::processes());
  CHECK(same_parameters(one, many));
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<One> const data{std::uint64_t(step)};
    long const samples = One::samples - 3 * step;
    auto const ours = data.view(samples);
    auto const theirs = data.template view<Many>(samples);
    auto const a = one.step(ours), b = many.step(theirs);
    CHECK(laws::same_losses(a, b));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(same_parameters(one, many));
    if (step < 2) continue;  // the fewest samples are evaluated alone
    CHECK(laws::same_bits(one.evaluate(ours), many.evaluate(theirs)));
    std::vector<float> x(std::size_t(samples * One::outputs_per_sample)), y(x.size());
    one.forward(ours, x);
    many.forward(theirs, y);
    CHECK(laws::same_numbers(x, y));
  }
}

}  // namespace processes
