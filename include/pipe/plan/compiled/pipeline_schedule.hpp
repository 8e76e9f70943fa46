// SPDX-License-Identifier: BSL-1.0
//
// The first half of a compiled pipeline: the stages' costs, and the schedule with its proof. The
// second half is instantiated only after the proof, so that an invalid schedule is one error. A
// schedule too large for the compiler is made and validated by the same functions at run time, when
// the program first reads the plan or constructs a trainer; never before main.
#pragma once

#include <type_traits>

#include <pipe/base/once.hpp>
#include <pipe/passes/compilation.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/proved.hpp>
#include <pipe/plan/compiled/chain_table.hpp>
#include <pipe/plan/compiled/chosen_cuts.hpp>
#include <pipe/plan/compiled/fitting_room.hpp>
#include <pipe/plan/compiled/proved_schedule.hpp>
#include <pipe/plan/compiled/stage_times.hpp>
#include <pipe/plan/options/options.hpp>

namespace pp {

namespace detail {

template <class M, class Options>
struct compiled_pipeline;

/// Passes, costs and the proved schedule of model M with a valid option_set.
template <class M, class Options>
struct pipeline_schedule : proved_schedule<Options, pipeline_schedule<M, Options>> {
  using chosen = chosen_options<Options>;
  using proved = proved_schedule<Options, pipeline_schedule>;
  template <class Family>
  using option = typename chosen::template option<Family>;
  using chosen::stages, chosen::ranks, chosen::where, chosen::micro_batches, chosen::samples,
      chosen::overlap, chosen::is_free, chosen::recomputes_ahead, chosen::first_kept,
      chosen::some_drop, chosen::room_trial;
  using typename chosen::backend, typename chosen::recompute, typename chosen::schedule,
      typename chosen::flushed;
  using model = M;

  using passes =
      compilation<M, stages, typename chosen_cuts<M, chosen>::type, samples, chosen::widths,
                  flushed::splits_backward, recompute, recomputes_ahead, chosen::input_gradients>;
  static constexpr graph_view graph() { return passes::outline; }
  static constexpr int const* cuts() { return passes::cuts.items; }
  static constexpr compiled_model const& whole_model() { return passes::whole; }
  /// The kernel groups, by number.
  static constexpr view<group> kernel_shapes() { return passes::shapes; }
  /// The backend's rule for launches of a program that run as one kernel.
  using chain_rule = typename backend::template chains<option<option_family::precision>,
                                                       option<option_family::products>>;
  using chains = std::conditional_t<chain_rule::any, numbered_chains<chain_rule, pipeline_schedule>,
                                    no_chains>;
  /// Whether the last stage's backward may also compute the loss, and what leads to it: no other
  /// rank is there to wait for it, or its rank runs every backward directly after its forward. The
  /// table in which this is looked up is one of equal costs, as the real one depends on what
  /// programs keep.
  static constexpr bool has_loss_in_backward() {
    if constexpr (flushed::splits_backward || !flushed::trains)
      return false;
    else if constexpr (ranks == 1 || micro_batches == 1)
      return true;
    else if constexpr (!is_of_this_library<flushed> ||
                       !fits_a_constant<flushed>(ranks, micro_batches))
      return false;
    else if constexpr (why_refused<flushed>(ranks, micro_batches) != nullptr)
      return false;
    else
      return is_backward_next_everywhere(
          make_table<flushed, ranks, micro_batches>(
              pp::schedules::problem<>{ranks, stages, micro_batches, 0, same_cost{}}, where),
          stages - 1);
  }
  /// The programs of stage S. Drops: backward recomputes the values that forward drops.
  template <int S, bool Drops>
  using programs = typename passes::template programs<S, Drops, chains>;
  /// The distinct kernels of chains; none for a backend without a chain rule.
  static constexpr view<chain_kernel> chain_kernels() {
    if constexpr (chain_rule::any)
      return chain_table<pipeline_schedule>::kernels;
    else
      return {};
  }

  /// Whether some launch of group g is in no chain.
  static constexpr bool is_launched_alone([[maybe_unused]] int g) {
    if constexpr (chain_rule::any)
      return chain_table<pipeline_schedule>::alone[g];
    else
      return true;
  }

  static constexpr view<unit_cost> costs() {
    return view<unit_cost>{passes::costs.items, passes::units};
  }
  static constexpr bool is_countable = pp::detail::is_countable(costs(), samples, micro_batches);

  /// The scheduling problem: times and saved bytes of every stage. If only the last micro-batches
  /// are kept, the times are those of the recomputed ones.
  template <int... S>
  static constexpr auto make_problem(std::integer_sequence<int, S...>) {
    chunk_cost const cost[] = {time_of_stage(
        passes::costs.items, passes::cuts[S], passes::cuts[S + 1], samples,
        passes::whole.place_of_recompute(some_drop), programs<S, some_drop>::layout.bytes,
        hidden_percent_of<flushed>(), time_by<option<option_family::partition>>{})...};
    return unequal_times(ranks, micro_batches, cost);
  }
  static constexpr auto problem = make_problem(std::make_integer_sequence<int, stages>{});
  /// The problem of a trial within the memory limit, which gives each rank its room.
  struct make_limited {
    static constexpr auto make() {
      return pp::schedules::problem<decltype(problem.costs), list<long, ranks>>{
          problem.ranks, problem.chunks,    problem.micro_batches, problem.hop,
          problem.costs, problem.bandwidth, problem.limit,         room()};
    }
  };
  static constexpr auto const& times() {
    if constexpr (room_trial == 0)
      return problem;
    else
      return once<by_compiler, make_limited>::get();
  }
  /// See fitting_room.hpp.
  static constexpr auto const& room() {
    return once<by_compiler, make_room<pipeline_schedule>>::get();
  }
  template <int Trial>
  using in_trial = compiled_pipeline<M, typename trial_options<Options, Trial>::type>;

  /// Whether the schedule is made and proved at compile time, or at run time on first use.
  static constexpr bool by_compiler = [](auto...) {
    if constexpr (is_free)
      if (!proved::flow::fits) return false;
    if constexpr (overlap == step_overlap::confirmed)
      if (!period_fits_a_constant<flushed>(ranks, micro_batches)) return false;
    return fits_a_constant<flushed>(ranks, micro_batches);
  }();

  /// The diagnosis of the schedule. Errors of a schedule that is made at run time are exceptions
  /// from table().
  static constexpr auto diagnose() {
    if constexpr (!is_countable) {
      return diagnosis_of<wrong::step_is_too_large, M, option<option_family::micro_batches>,
                          option<option_family::micro_batch_size>>();
    } else if constexpr (!by_compiler) {
      return std::type_identity<nothing_wrong>{};
    } else if constexpr (!proved::fills_in_a_constant()) {
      return diagnosis_of<wrong::function_must_be_constexpr, flushed,
                          wrong::Function<wrong::member::fill>>();
    } else if constexpr (constexpr verdict v = proved::judgement(); v.ok()) {
      return std::type_identity<nothing_wrong>{};
    } else {
      return diagnosis_of<wrong::schedule_is_not_valid, flushed, wrong::Because<v.what>,
                          wrong::OnRank<v.rank>, wrong::AtPosition<v.position>,
                          wrong::ForAction<v.which.kind, v.which.chunk, v.which.micro_batch>>();
    }
  }

  // ---- consequences of a valid schedule ----

  /// The forward-only table of evaluation and inference: groups of micro-batches, each passing all
  /// chunks in turn. A group has as many micro-batches as the smallest boundary has slots, so no
  /// action of a group waits for a slot: ranks with several chunks overlap and cannot deadlock.
  struct make_evaluation {
    /// Micro-batches of a group: the fewest activation slots of a boundary, those of all ranks that
    /// write to it, or all for one stage.
    template <int... S>
    static constexpr int together(std::integer_sequence<int, S...>) {
      int least = micro_batches;
      for (int const n : {least, proved::template slots<S>().activation * replicas(where, S)...})
        if (least > n) least = n;
      return least;
    }
    /// Empty rows: of compile-time capacity if by_compiler, otherwise on the heap.
    static constexpr auto no_rows() {
      if constexpr (by_compiler)
        return detail::static_rows<action, ranks, micro_batches * flushed::chunks_per_rank>{};
      else
        return dynamic_rows<action>(ranks);
    }
    static constexpr auto make() {
      int const group = together(std::make_integer_sequence<int, stages - 1>{});
      auto rows = no_rows();
      for (int first = 0; first < micro_batches; first += group)
        for (int c = 0; c < stages; ++c)
          for (int mb = first; mb < micro_batches && mb < first + group; ++mb)
            rows.push(rank_of(where, ranks, c, mb), action{action_kind::forward, c, mb});
      return rows;
    }
  };
  static constexpr auto const& evaluation() { return once<by_compiler, make_evaluation>::get(); }
};

}  // namespace detail

}  // namespace pp
