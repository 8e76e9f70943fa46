// SPDX-License-Identifier: BSL-1.0
//
// The option of a Pipeline that chooses whether steps on a GPU run as CUDA graphs. The option
// changes no bit.
#pragma once

#include <concepts>

namespace pp {

/// Runs that repeat are captured as CUDA graphs and replayed (default), if a step launches at most
/// MostKernels kernels; the driver keeps memory for each kernel of a graph. No effect on the host.
template <long MostKernels = 32768>
struct Graphs {
  static constexpr long most_kernels = MostKernels;
  static constexpr bool is_on = true;
};
/// Every step is launched kernel by kernel.
struct NoGraphs {
  static constexpr long most_kernels = 0;
  static constexpr bool is_on = false;
};

namespace detail {

template <class O>
concept graph_option = requires {
  { O::most_kernels } -> std::same_as<long const&>;
  { O::is_on } -> std::same_as<bool const&>;
};

}  // namespace detail

}  // namespace pp
