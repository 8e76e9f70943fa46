// SPDX-License-Identifier: BSL-1.0
//
// The schedule option: one of the library's families, or a user-defined schedule_policy.
#pragma once

#include <pipe/base/constant.hpp>
#include <pipe/plan/options/constants.hpp>
#include <pipe/plan/options/gradient_accumulation.hpp>
#include <pipe/plan/options/micro_batches.hpp>
#include <pipe/plan/options/stages.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/proved.hpp>

namespace pp {

namespace detail {

/// The first missing member of a type that resembles a schedule; `none` for one that does not.
template <class O>
constexpr wrong::member missing_of_schedule() {
  using enum wrong::member;
  if constexpr (!requires(problem<> const& question, static_table<1, 8>& answer) {
                  O::fill(question, answer);
                }) {
    constexpr bool looks_like_one = requires { O::chunks_per_rank; };
    return looks_like_one ? fill : none;
  } else {
    if constexpr (!requires { O::name; }) return name;
    if constexpr (!requires { O::where; }) return where;
    if constexpr (!requires { O::chunks_per_rank; }) return chunks_per_rank;
    if constexpr (!requires { O::splits_backward; }) return splits_backward;
    if constexpr (!requires { O::trains; }) return trains;
    if constexpr (!detail::refuses_in_words<O>) return refuses;
    return none;
  }
}

/// Whether a placement supports this number of chunks per rank.
constexpr bool can_place(placement where, int chunks_per_rank) {
  return where != placement::straight || chunks_per_rank == 1;
}

/// Whether a family whose steps overlap refuses a mini-batch of that many micro-batches.
template <class S>
constexpr bool refuses_mini_batch(int ranks, int micro_batches) {
  if constexpr (requires { S::refuses_mini_batch(ranks, micro_batches); })
    return S::refuses_mini_batch(ranks, micro_batches) != nullptr;
  else
    return false;
}
/// Questions to a schedule as calls, to test whether they are constant expressions.
template <class S, int Ranks, int MicroBatches>
struct refusal_call {
  static constexpr auto call() { return why_refused<S>(Ranks, MicroBatches); }
};
template <class S, int Ranks, int MicroBatches>
struct fit_call {
  static constexpr auto call() { return fits_a_constant<S>(Ranks, MicroBatches); }
};

}  // namespace detail

namespace option_family {
/// The family of schedules: every schedule_policy. Its checks come before the schedule is made:
/// they concern its numbers and placement, the proof itself is in pipeline_schedule.
struct schedule : detail::any_family {
  using fallback = OneFOneB;
  template <class O>
  static constexpr bool holds() {
    return schedules::schedule_policy<O>;
  }

  template <class O>
  static constexpr auto diagnose_type() {
    using enum wrong::member;
    constexpr wrong::member lacks = detail::missing_of_schedule<O>();
    if constexpr (lacks != none)
      return detail::diagnosis_of<wrong::schedule_is_incomplete, O, wrong::Missing<lacks>>();
    else if constexpr (detail::has_facts_of_schedule<O>)
      return detail::diagnose_facts<O, name, where, chunks_per_rank, splits_backward, trains,
                                    updates, recomputes_ahead, limits_memory>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<schedule>;
    using cut = typename Options::template get<stages>;
    using parts = typename Options::template get<micro_batches>;
    using sums = typename Options::template get<sum>;
    constexpr int chunks = option::chunks_per_rank, ranks = detail::ranks_of<cut, option>();
    if constexpr (detail::has_faulty_text<option>)
      return typename option::diagnosis_of_text{};
    else if constexpr (chunks < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option, wrong::Found<chunks>>();
    else if constexpr (detail::is_unflushed<option>() &&
                       detail::overlap_of<option>() == detail::step_overlap::none)
      return detail::diagnosis_of<wrong::pipeline_keeps_one_version_of_each_weight, option>();
    else if constexpr (!detail::can_place(option::where, chunks))
      return detail::diagnosis_of<wrong::schedule_is_not_valid, option,
                                  wrong::Because<schedules::fault::wrong_shape>>();
    else if constexpr (!option::trains)
      return detail::diagnosis_of<wrong::schedule_does_not_train, option>();
    else if constexpr (detail::has_ranks_of_stages<cut> && !detail::has_stage_replicas<option>())
      return detail::diagnosis_of<wrong::schedule_has_no_stage_replicas, option, cut>();
    else if constexpr (cut::value * replicas(option::where) % chunks != 0)
      return detail::diagnosis_of<wrong::stages_are_no_multiple_of_the_chunks_per_rank, cut,
                                  option>();
    else if constexpr (!detail::is_constant<detail::refusal_call<option, ranks, parts::value>>)
      return detail::diagnosis_of<wrong::function_must_be_constexpr, option,
                                  wrong::Function<wrong::member::refuses>>();
    else if constexpr (!detail::is_constant<detail::fit_call<option, ranks, parts::value>>)
      return detail::diagnosis_of<wrong::function_must_be_constexpr, option,
                                  wrong::Function<wrong::member::fits_a_constant>>();
    else if constexpr (schedules::why_refused<detail::flushed_of<option>>(ranks, parts::value) !=
                           nullptr ||
                       detail::refuses_mini_batch<option>(ranks,
                                                          parts::value * sums::accumulations))
      return detail::diagnosis_of<wrong::schedule_refuses_these_numbers, option, cut, parts>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};
}  // namespace option_family

}  // namespace pp
