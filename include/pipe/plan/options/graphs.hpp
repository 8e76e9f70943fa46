// SPDX-License-Identifier: BSL-1.0
//
// The option for CUDA graphs of whole steps.
#pragma once

#include <pipe/backend/cuda/graph_option.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp::option_family {

/// The family of graph options: every graph_option.
struct graphs : detail::any_family {
  using fallback = Graphs<>;
  template <class O>
  static constexpr bool holds() {
    return detail::graph_option<O>;
  }

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<graphs>;
    if constexpr (option::is_on && option::most_kernels < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp::option_family
