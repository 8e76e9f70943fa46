// SPDX-License-Identifier: BSL-1.0
//
// The number of stages.
#pragma once

#include <pipe/train/options/family.hpp>

namespace pp {

namespace option_family {
struct stages;
}

/// The model is cut into N stages (default 1), at most as many as it has top-level layers. Ranks
/// are stages divided by the schedule's chunks per rank.
template <int N>
struct Stages {
  using family = option_family::stages;
  static constexpr int value = N;
};

namespace wrong {
/// A stage would have no top-level layer.
template <class... What>
struct more_stages_than_layers;
}  // namespace wrong

/// The family of stage counts: from 1 to the number of top-level layers of the model.
struct option_family::stages : detail::any_family {
  using fallback = Stages<1>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<stages>;
    if constexpr (option::value < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<stages>;
    constexpr int layers = M::graph.size.units;
    if constexpr (option::value > layers)
      return detail::diagnosis_of<wrong::more_stages_than_layers, option, wrong::Layers<layers>>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
