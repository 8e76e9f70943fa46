// SPDX-License-Identifier: BSL-1.0
//
// A run of launches as kernels: a chain of Linear and activation layers of up to 128 channels is
// one kernel forward, and two backward, of which the second adds up the splits of the weights'
// gradients.
#pragma once

#include <pipe/backend/cuda/block/kernel_list.hpp>
#include <pipe/backend/cuda/narrow_mlp/backward.hpp>
#include <pipe/backend/cuda/narrow_mlp/forward.hpp>
#include <pipe/backend/cuda/narrow_mlp/runs.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/passes/stage_programs.hpp>

namespace pp::cuda {

/// The kernels of a run of groups G.
template <class P, bool IsBackward, int Rows, int... G>
struct narrow_mlp {
  static constexpr int launches = sizeof...(G);
  using arguments = run_arguments<launches>;

  static constexpr auto kernels() {
    if constexpr (!IsBackward)
      return bodies<narrow_forward_kernel<P, Rows, G...>>{};
    else if constexpr (narrow_sums_kernel<P, G...>::blocks_in_all > 0)
      return bodies<narrow_backward_kernel<P, Rows, G...>, narrow_sums_kernel<P, G...>>{};
    else
      return bodies<narrow_backward_kernel<P, Rows, G...>>{};
  }

  template <int H>
  static constexpr long workspace_of_group() {
    if constexpr (group_of<P, H>::value.anchor == op_kind::matmul_weight_gradient)
      return align_up(narrow_weight_sums<P, H>::tiles::workspace_bytes);
    return 0;
  }
  /// The launches have their workspaces one behind the other.
  static constexpr long workspace_bytes = (0L + ... + workspace_of_group<G>());

  /// The arguments of all launches as those of the kernels, from a workspace of `workspace_bytes`.
  static arguments pack(cuda::arguments const* each, void* workspace) {
    constexpr long bytes[] = {workspace_of_group<G>()...};
    arguments a;
    char* at = static_cast<char*>(workspace);
    for (int i = 0; i < launches; ++i) {
      a.of[i] = each[i];
      a.of[i].workspace = at;
      if (at != nullptr) at += bytes[i];
    }
    return a;
  }
};

/// The runs of program Which of a stage, of kernel source P. Programs: its stage_programs.
template <class P, class Programs, program Which>
struct narrow_runs_of {
  static constexpr auto runs = find_narrow_runs<P>(Programs::template launches<Which>);
  static constexpr int count = int(runs.size());

  /// One type for each list of groups, whichever stage and program it is in.
  template <int I, int... K>
  static constexpr auto kernels_of(std::integer_sequence<int, K...>) {
    constexpr auto const& launches = Programs::template launches<Which>;
    constexpr narrow_run run = runs.items[I];
    return narrow_mlp<P, run.is_backward, run.rows, launches.items[run.first + K].group...>{};
  }
  template <int I>
  using kernels = decltype(kernels_of<I>(std::make_integer_sequence<int, runs.items[I].count>{}));
};

}  // namespace pp::cuda
