// SPDX-License-Identifier: BSL-1.0
//
// The partition of the model into stages: a policy of passes/partition_policy.hpp, or a
// user-defined one.
#pragma once

#include <pipe/base/constant.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/passes/partition_policy.hpp>
#include <pipe/train/option_family.hpp>
#include <pipe/train/options/stages.hpp>

namespace pp {

namespace wrong {
template <class... What>
struct cuts_must_ascend_and_make_as_many_stages;
template <class... What>
struct profile_is_of_another_model;
template <class... What>
struct partition_is_incomplete;
}  // namespace wrong

/// Whether policy P has times of a model with this number of layers, or needs none.
template <class P>
constexpr bool has_times_of([[maybe_unused]] int layers) {
  if constexpr (requires { typename P::profile; })
    return P::profile::layers == layers;
  else
    return true;
}

/// Whether policy P says of these numbers that there are no such cuts.
template <class P>
constexpr bool can_cut([[maybe_unused]] int layers, [[maybe_unused]] int stages) {
  if constexpr (requires { P::possible(layers, stages); })
    return P::possible(layers, stages);
  else
    return true;
}

namespace option_family {
struct partition : any_family {
  using fallback = ByCost;
  template <class O>
  static constexpr bool holds() {
    if constexpr (requires { typename O::profile; })
      return partition_policy<O> && layer_profile<typename O::profile>;
    else
      return partition_policy<O>;
  }
  /// A ByProfile of something that is no profile has a `cut`: it is unknown.
  template <class O>
  static constexpr auto diagnose_type() {
    constexpr bool looks_like_one = requires { &O::cut; } || requires {
      &O::template cut<list<long, 1>, list<int, 2>>;
    };
    if constexpr (looks_like_one && !partition_policy<O>)
      return diagnosis_of<wrong::partition_is_incomplete, O, wrong::Missing<member::cut>>();
    else
      return std::type_identity<nothing_wrong>{};
  }

  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<partition>;
    using count = typename Options::template get<stages>;
    constexpr int layers = M::graph.size.units;
    if constexpr (!has_times_of<option>(layers))
      return diagnosis_of<wrong::profile_is_of_another_model, typename option::profile,
                          wrong::Expected<layers>, wrong::Found<option::profile::layers>>();
    else if constexpr (!can_cut<option>(layers, count::value))
      return diagnosis_of<wrong::cuts_must_ascend_and_make_as_many_stages, option, count,
                          wrong::Layers<layers>>();
    else
      return std::type_identity<nothing_wrong>{};
  }
};
}  // namespace option_family

}  // namespace pp
