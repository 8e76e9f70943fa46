// SPDX-License-Identifier: BSL-1.0
//
// The partition option: a policy of passes/partition_policy.hpp, or a user-defined one.
#pragma once

#include <type_traits>

#include <pipe/base/constant.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/graph/gradient_graph.hpp>
#include <pipe/passes/costs.hpp>
#include <pipe/passes/partition_policy.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/options/stages.hpp>

namespace pp {

namespace detail {

/// Whether a type has a member `cut`, be it data, function or template: the name is then ambiguous
/// in a class that inherits another `cut`.
struct another_cut {
  int cut = 0;
};
template <class O>
struct with_another_cut : O, another_cut {};
template <class O>
concept has_member_cut =
    std::is_class_v<O> && !std::is_final_v<O> && !requires { &with_another_cut<O>::cut; };

/// Whether policy P's profile, if it has one, is of a model with this number of layers.
template <class P>
constexpr bool has_times_of([[maybe_unused]] int layers) {
  if constexpr (requires { typename P::profile; })
    return P::profile::layers == layers;
  else
    return true;
}

/// Whether policy P supports these numbers of layers and stages.
template <class P>
constexpr bool can_cut([[maybe_unused]] int layers, [[maybe_unused]] int stages) {
  if constexpr (requires { P::possible(layers, stages); })
    return P::possible(layers, stages);
  else
    return true;
}

/// Estimated times of the top-level layers of model M, forward and backward, without recomputation.
template <class M>
constexpr auto training_times() {
  constexpr int layers = M::graph.size.units;
  auto const gradients = differentiate<count_gradients(M::graph)>(M::graph);
  gradient_view const backward = gradients;
  graph_view const forward = M::graph;
  list<unit_cost, layers> costs;
  add_costs(op_list::forward, forward.ops, costs.items);
  add_costs(op_list::input_gradients, backward.input_ops, costs.items);
  add_costs(op_list::weight_gradients, backward.weight_ops, costs.items);
  list<long, layers> times;
  for (int u = 0; u < layers; ++u) times[u] = training_time(costs[u]);
  return times;
}

/// Policy P's cuts of model M as a call, to test whether it is a constant expression.
template <class M, class P, int Stages>
struct cut_call {
  static constexpr auto call() {
    auto const times = training_times<M>();
    list<int, Stages + 1> cuts;
    P::cut(times, M::graph.size.units, Stages, cuts);
    return cuts;
  }
};

/// The diagnosis of a user-defined policy's cuts. Those of the library's policies are valid
/// wherever can_cut holds.
template <class M, class P, class Count>
constexpr auto diagnose_cuts() {
  constexpr int layers = M::graph.size.units;
  if constexpr (is_of_this_library<P>)
    return std::type_identity<nothing_wrong>{};
  else if constexpr (!is_constant<cut_call<M, P, Count::value>>)
    return diagnosis_of<wrong::function_must_be_constexpr, P,
                        wrong::Function<wrong::member::cut>>();
  else if constexpr (!are_cuts(cut_call<M, P, Count::value>::call(), layers, Count::value))
    return diagnosis_of<wrong::cuts_must_ascend_and_make_as_many_stages, P, Count,
                        wrong::Layers<layers>>();
  else
    return std::type_identity<nothing_wrong>{};
}

}  // namespace detail

namespace option_family {
/// The family of partition policies: every partition_policy, whose profile, if it names one, is a
/// layer_profile.
struct partition : detail::any_family {
  using fallback = ByCost;
  template <class O>
  static constexpr bool holds() {
    if constexpr (requires { typename O::profile; })
      return detail::partition_policy<O> && detail::layer_profile<typename O::profile>;
    else
      return detail::partition_policy<O>;
  }
  /// ByProfile of a type that is no profile has a `cut`, so it is reported as an unknown option.
  template <class O>
  static constexpr auto diagnose_type() {
    if constexpr (detail::has_member_cut<O> && !detail::partition_policy<O>)
      return detail::diagnosis_of<wrong::partition_is_incomplete, O,
                                  wrong::Missing<wrong::member::cut>>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }

  /// Checks the profile's number of layers, then that of the stages, then the cuts themselves.
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<partition>;
    using count = typename Options::template get<stages>;
    constexpr int layers = M::graph.size.units;
    if constexpr (!detail::has_times_of<option>(layers))
      return detail::diagnosis_of<wrong::profile_is_of_another_model, typename option::profile,
                                  wrong::Expected<layers>, wrong::Found<option::profile::layers>>();
    else if constexpr (!detail::can_cut<option>(layers, count::value))
      return detail::diagnosis_of<wrong::cuts_must_ascend_and_make_as_many_stages, option, count,
                                  wrong::Layers<layers>>();
    else
      return detail::diagnose_cuts<M, option, count>();
  }
};
}  // namespace option_family

}  // namespace pp
