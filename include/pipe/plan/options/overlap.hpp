// SPDX-License-Identifier: BSL-1.0
//
// Checks of options and models with steps that overlap: see step_overlap.
#pragma once

#include <type_traits>

#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/options/schedule.hpp>
#include <pipe/plan/options/stages.hpp>
#include <pipe/plan/options/transport.hpp>
#include <pipe/plan/options/zero.hpp>

namespace pp {

namespace detail {

/// The diagnosis of a set of options, with this backend, if its steps overlap.
template <class Options, class Backend>
constexpr auto diagnose_overlap() {
  using steps = typename Options::template get<option_family::schedule>;
  using between = typename Options::template get<option_family::transport>;
  using cut = typename Options::template get<option_family::stages>;
  using zero = typename Options::template get<option_family::zero>;
  constexpr bool copies = between::transport::copies;
  if constexpr (overlap_of<steps>() == step_overlap::none)
    return std::type_identity<nothing_wrong>{};
  else if constexpr (Backend::has_own_memory)
    return diagnosis_of<wrong::steps_do_not_overlap_with, steps, Backend>();
  else if constexpr (copies && !replica_transport<typename between::transport>)
    return diagnosis_of<wrong::steps_do_not_overlap_with, steps, between>();
  else if constexpr (zero_of<zero, typename between::transport>::level > 1)
    return diagnosis_of<wrong::steps_do_not_overlap_with, steps, zero>();
  else if constexpr (copies && !std::is_void_v<replicated_by<cut, steps>>)
    return diagnosis_of<wrong::steps_do_not_overlap_with, steps, cut, between>();
  else
    return std::type_identity<nothing_wrong>{};
}

/// The same with model M.
template <class M, class Options>
constexpr auto diagnose_overlap_of_model() {
  using steps = typename Options::template get<option_family::schedule>;
  constexpr bool depend = any_tied(model_tables<M>::outline);
  if constexpr (overlap_of<steps>() == step_overlap::free && depend)
    return diagnosis_of<wrong::stages_must_update_independently, steps, M>();
  else
    return std::type_identity<nothing_wrong>{};
}

}  // namespace detail

}  // namespace pp
