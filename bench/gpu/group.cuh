// SPDX-License-Identifier: BSL-1.0
//
// A kernel group alone, without a model.
#pragma once

#include <pipe/pipe.hpp>

#include "measure.cuh"

namespace bench {

/// A pipeline that has one kernel group, Described::make(), on numbers of type T in memory.
template <class T, class Described>
struct alone {
  using element = T;
  using leaves = typename Described::leaves;
  static constexpr int samples = 1;
  static constexpr pp::detail::group group_at(int) { return Described::make(); }
};

/// Microseconds of the kernels of P's group, which read and write `operands`.
template <class P, class Kernels = pp::cuda::lowered<P, 0>>
double microseconds_of_group(std::initializer_list<void*> operands, pp::cuda::arguments a = {}) {
  pp::cuda::prepare_kernels(Kernels{});
  constexpr long tickets_bytes = pp::cuda::most_tickets * long(sizeof(unsigned));
  device_buffer const workspace(pp::cuda::workspace_of(Kernels{})), tickets(tickets_bytes);
  check(cudaMemset(tickets.data(), 0, tickets_bytes), "tickets");
  std::copy(operands.begin(), operands.end(), a.operand);
  a.workspace = workspace.data();
  a.tickets = tickets.as<unsigned>();
  return microseconds([&](cudaStream_t on) { pp::cuda::launch_kernels(Kernels{}, a, on); });
}

}  // namespace bench
