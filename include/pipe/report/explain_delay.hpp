// SPDX-License-Identifier: BSL-1.0
//
// The exchange of replicas that apply gradients a step late, as text: see delayed_replica.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <string>

#include <pipe/plan/options/partition.hpp>
#include <pipe/report/amounts.hpp>

namespace pp {

/// What each of n delayed replicas of a trainer sends in a step, and the bandwidth at which the
/// next step hides it: that of all its gradients, n - 1 times, in one makespan.
template <class Trainer>
std::string explain_delay(int n) {
  using compiled = typename Trainer::compiled;
  using partition = typename compiled::partition;
  constexpr bool profiled = requires { typename partition::profile; };  // else times are FLOPs
  auto const& plan = compiled::plan();
  long gradients = 0;
  for (int r = 0; r < plan.rank_count; ++r) gradients += plan.summed_bytes[r];
  double const bytes = double(n - 1) * double(gradients) * (profiled ? 1 : 1000);
  return "replicas a step late: each of " + std::to_string(n) + " sends " + std::to_string(n - 1) +
         " times " + console::readable_bytes(gradients) + " per step, hidden in the next one by " +
         detail::readable_real(bytes / double(compiled::timeline().makespan), 3) +
         " GB/s each way" + (profiled ? "" : " for each TFLOP/s") + "\n";
}

}  // namespace pp
