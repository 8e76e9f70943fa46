// SPDX-License-Identifier: BSL-1.0
//
// The option for what replicas divide among them instead of each having all of it.
#pragma once

#include <pipe/graph/diagnostics.hpp>
#include <pipe/train/options/family.hpp>

namespace pp {

namespace option_family {
struct zero;
}

/// Replicas divide the optimizer's state (Level 1): each updates its part of the parameters, and
/// gives the others the result. Rajbhandari et al., 2020: ZeRO. A step sends as much as without
/// it. Default: ZeRO<0>, all replicas have all.
///
/// law: loss, gradient norm and parameters have the bits of ZeRO<0>
template <int Level>
struct ZeRO {
  using family = option_family::zero;
  static constexpr int level = Level;
};

namespace wrong {
/// ZeRO has no such level.
template <class... What>
struct zero_has_levels_0_to_1;
}  // namespace wrong

/// The family of divisions among replicas.
struct option_family::zero : detail::any_family {
  using fallback = ZeRO<0>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<zero>;
    if constexpr (option::level < 0 || option::level > 1)
      return detail::diagnosis_of<wrong::zero_has_levels_0_to_1, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
