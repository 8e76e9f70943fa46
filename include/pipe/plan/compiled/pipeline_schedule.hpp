// SPDX-License-Identifier: BSL-1.0
//
// The first half of a compiled pipeline: the stages' costs, and the schedule with its proof. The
// second half is instantiated only after the proof, so that an invalid schedule is one error. A
// schedule too large for the compiler is made and validated by the same functions at run time, when
// the program first reads the plan or constructs a trainer; never before main.
#pragma once

#include <type_traits>

#include <pipe/base/error.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/base/once.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/passes/compilation.hpp>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/proved.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/plan/compiled/chain_table.hpp>
#include <pipe/plan/compiled/flow_schedule.hpp>
#include <pipe/plan/compiled/stage_times.hpp>
#include <pipe/plan/options/options.hpp>

namespace pp {

namespace detail {

/// Passes, costs and the proved schedule of model M with a valid option_set.
template <class M, class Options>
struct pipeline_schedule : chosen_options<Options> {
  using chosen = chosen_options<Options>;
  template <class Family>
  using option = typename chosen::template option<Family>;
  using chosen::stages, chosen::ranks, chosen::where, chosen::micro_batches, chosen::samples,
      chosen::overlap, chosen::is_free, chosen::recomputes_ahead, chosen::first_kept,
      chosen::some_drop;
  using typename chosen::backend, typename chosen::recompute, typename chosen::schedule,
      typename chosen::flushed;
  using model = M;

  using passes = compilation<M, stages, typename chosen::cutter, samples, chosen::widths,
                             flushed::splits_backward, recompute, recomputes_ahead>;
  static constexpr graph_view graph() { return passes::outline; }
  static constexpr int const* cuts() { return passes::cuts.items; }
  /// The first micro-batch whose values a stage keeps. needs: a valid table
  static constexpr int first_kept_of([[maybe_unused]] int chunk) {
    if constexpr (recomputes_ahead)
      if (!is_recomputed(table(), chunk)) return 0;
    return first_kept;
  }

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
              pp::problem<>{ranks, stages, micro_batches, 0, same_cost{}}, where),
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
    chunk_cost const cost[] = {time_of_stage<option<option_family::partition>>(
        passes::costs.items, passes::cuts[S], passes::cuts[S + 1], samples,
        passes::whole.place_of_recompute(some_drop), programs<S, some_drop>::layout.bytes,
        hidden_percent_of<flushed>())...};
    return unequal_times(ranks, micro_batches, cost);
  }
  static constexpr auto problem = make_problem(std::make_integer_sequence<int, stages>{});
  static constexpr auto const& times() { return problem; }

  /// Whether the schedule is made and proved at compile time, or at run time on first use.
  static constexpr bool by_compiler = [](auto...) {
    if constexpr (is_free)
      if (!flow_schedule<pipeline_schedule>::by_compiler) return false;
    if constexpr (overlap == step_overlap::confirmed)
      if (!period_fits_a_constant<flushed>(ranks, micro_batches)) return false;
    return fits_a_constant<flushed>(ranks, micro_batches);
  }();

  /// Maker of the unproved table, of compile-time capacity if by_compiler.
  struct make_schedule {
    static constexpr auto make() {
      if constexpr (by_compiler)
        return make_table<flushed, ranks, micro_batches>(problem, where);
      else
        return make_dynamic_table<flushed>(problem, where);
    }
  };
  /// The table as the policy fills it, not yet proved.
  static constexpr auto const& filled() { return once<by_compiler, make_schedule>::get(); }

  /// Whether a trainer runs every action of the table. complete: check_complete(); actions that no
  /// trainer runs may have taken the room of others
  static constexpr verdict check_run(verdict const& complete) {
    if (!complete.ok() && complete.what != fault::too_many) return complete;
    verdict found = check_runs(filled(), recomputes_ahead && some_drop);
    if (found.ok()) found = complete;
    if constexpr (recomputes_ahead)
      if (found.ok()) found = check_recomputed(problem, filled());
    return found;
  }
  /// validate(), each check in a constant with its own evaluation budget: in a single one only half
  /// as many actions would fit.
  struct proof {
    static constexpr verdict has_shape = detail::check_shape(problem, filled());
    static constexpr verdict is_complete =
        has_shape.ok() ? detail::check_complete(problem, filled()) : has_shape;
    static constexpr verdict is_run = check_run(is_complete);
    static constexpr verdict is_ordered =
        is_run.ok() ? detail::check_order(problem, filled()) : is_run;
    static constexpr verdict has_resources =
        is_ordered.ok() ? detail::check_resources(problem, filled()) : is_ordered;
    static constexpr verdict found =
        has_resources.ok() ? detail::check_progress(problem, filled()) : has_resources;
  };
  /// Maker of the verdict: proof::found, or validate() at run time.
  struct judge {
    static constexpr verdict make() {
      if constexpr (by_compiler) return proof::found;
      verdict const found = validate(problem, filled());
      return found.ok() ? check_run(found) : found;
    }
  };
  /// The result of all checks of the table. cost: at run time, that of the checks at the first call
  static constexpr verdict const& judgement() {
    if constexpr (is_free)
      if (verdict const& v = flow_schedule<pipeline_schedule>::judgement(); !v.ok()) return v;
    return once<by_compiler, judge>::get();
  }

  /// The proved table, on which everything below depends.
  ///
  /// throws: pp::error if it is made at run time and not valid
  static constexpr auto const& table() {
    if constexpr (!by_compiler)
      if (verdict const& v = judgement(); !v.ok())
        throw_error<error>({"schedule ", flushed::name, " is not valid for ", ranks, " ranks and ",
                            micro_batches, " micro-batches: ", short_name(v.which.kind),
                            " of chunk ", v.which.chunk, ", micro-batch ", v.which.micro_batch,
                            " on rank ", v.rank, ", position ", v.position, ": ", v.text()});
    return filled();
  }

  /// Whether the schedule's `fill` is a constant expression. Known for the library's schedules.
  static constexpr bool fills_in_a_constant() {
    if constexpr (is_of_this_library<flushed>)
      return true;
    else
      return is_constant<make_table_call>;
  }
  struct make_table_call {
    static constexpr auto call() { return make_schedule::make(); }
  };

  /// The diagnosis of the schedule. Errors of a schedule that is made at run time are exceptions
  /// from table().
  static constexpr auto diagnose() {
    if constexpr (!is_countable) {
      return diagnosis_of<wrong::step_is_too_large, M, option<option_family::micro_batches>,
                          option<option_family::micro_batch_size>>();
    } else if constexpr (!by_compiler) {
      return std::type_identity<nothing_wrong>{};
    } else if constexpr (!fills_in_a_constant()) {
      return diagnosis_of<wrong::function_must_be_constexpr, flushed,
                          wrong::Function<member::fill>>();
    } else if constexpr (constexpr verdict v = judgement(); v.ok()) {
      return std::type_identity<nothing_wrong>{};
    } else {
      return diagnosis_of<wrong::schedule_is_not_valid, flushed, wrong::Because<v.what>,
                          wrong::OnRank<v.rank>, wrong::AtPosition<v.position>,
                          wrong::ForAction<v.which.kind, v.which.chunk, v.which.micro_batch>>();
    }
  }

  // ---- consequences of a valid schedule ----

  /// Maker of the simulated timeline. throws: as table()
  struct make_timeline {
    static constexpr auto make() { return simulate(problem, table()); }
  };
  static constexpr auto const& timeline() { return once<by_compiler, make_timeline>::get(); }

  /// Maker of the period, if steps overlap. throws: as table()
  struct make_period {
    static constexpr step_period make() { return period_of_steps<schedule>(problem, table()); }
  };
  static constexpr step_period const& period() { return once<by_compiler, make_period>::get(); }

  /// Slots of the boundary between stage `Boundary` and the next.
  template <int Boundary>
  struct make_slots {
    static constexpr detail::slot_count make() {
      slot_count all = detail::spare_slots(boundary_slots(problem, table(), timeline(), Boundary),
                                           micro_batches);
      if constexpr (is_free)
        all = most_of(all, flow_schedule<pipeline_schedule>::template slots<Boundary>());
      return all;
    }
  };
  template <int Boundary>
  static constexpr detail::slot_count const& slots() {
    return once<by_compiler, make_slots<Boundary>>::get();
  }

  /// The forward-only table of evaluation and inference: groups of micro-batches, each passing all
  /// chunks in turn. A group has as many micro-batches as the smallest boundary has slots, so no
  /// action of a group waits for a slot: ranks with several chunks overlap and cannot deadlock.
  struct make_evaluation {
    /// Micro-batches of a group: the fewest activation slots of a boundary, those of all ranks that
    /// write to it, or all for one stage.
    template <int... S>
    static constexpr int together(std::integer_sequence<int, S...>) {
      int least = micro_batches;
      for (int const n : {least, slots<S>().activation * replicas(where, S)...})
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

  /// Versions of a stage's weights.
  static constexpr int version_slots([[maybe_unused]] int chunk) {
    if constexpr (is_free)
      return flow_schedule<pipeline_schedule>::version_slots(chunk);
    else
      return overlap == step_overlap::none ? 1 : 2;
  }
  /// Most micro-batches in flight in a stage at once.
  static constexpr int in_flight(int chunk) {
    int most = peak_in_chunk(table(), chunk);
    if constexpr (is_free)
      if (int const n = flow_schedule<pipeline_schedule>::in_flight(chunk); n > most) most = n;
    return most;
  }

  /// Most micro-batches between B, or R where it is, and W at once; 0 if neither is in the table.
  static constexpr int pending_slots(int chunk) {
    return flushed::splits_backward || recomputes_ahead ? detail::peak_pending(table(), chunk) : 0;
  }
};

}  // namespace detail

}  // namespace pp
