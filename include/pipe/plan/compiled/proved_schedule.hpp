// SPDX-License-Identifier: BSL-1.0
//
// The table of a pipeline's schedule, its proof, and what follows from it: made by the compiler or,
// by the same functions, by the program when it first asks; never before main.
#pragma once

#include <pipe/base/constant.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/once.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/plan/compiled/fitting_room.hpp>
#include <pipe/plan/compiled/flow_schedule.hpp>
#include <pipe/plan/options/options.hpp>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/proved.hpp>
#include <pipe/schedule/simulate.hpp>

namespace pp::detail {

/// The schedule of a pipeline with a valid option_set. Work: times(), the problem; and by_compiler,
/// whether the schedule is made and proved at compile time, or at run time on first use.
template <class Options, class Work>
struct proved_schedule : chosen_options<Options> {
  using chosen = chosen_options<Options>;
  using chosen::ranks, chosen::where, chosen::micro_batches, chosen::overlap, chosen::is_free,
      chosen::recomputes_ahead, chosen::first_kept, chosen::some_drop, chosen::room_trial;
  using typename chosen::schedule, typename chosen::flushed;
  /// If steps overlap freely.
  using flow = flow_schedule<Work>;

  /// Maker of the unproved table, of compile-time capacity if by_compiler.
  struct make_schedule {
    static constexpr auto make() {
      if constexpr (Work::by_compiler)
        return make_table<flushed, ranks, micro_batches>(Work::times(), where);
      else
        return make_dynamic_table<flushed>(Work::times(), where);
    }
  };
  /// The table as the policy fills it, not yet proved.
  static constexpr auto const& filled() {
    if constexpr (room_trial == fitting_trial)
      return in_fitting_trial<Work>(
          []<class T>(std::type_identity<T>) -> auto const& { return T::work::filled(); });
    else
      return once<Work::by_compiler, make_schedule>::get();
  }

  /// Whether a trainer runs every action of the table. complete: check_complete(); actions that no
  /// trainer runs may have taken the room of others
  static constexpr verdict check_run(verdict const& complete) {
    if (!complete.ok() && complete.what != fault::too_many) return complete;
    verdict found = check_runs(filled(), recomputes_ahead && some_drop);
    if (found.ok()) found = complete;
    if constexpr (recomputes_ahead)
      if (found.ok()) found = check_recomputed(Work::times(), filled());
    return found;
  }
  /// validate(), each check in a constant with its own evaluation budget: in a single one only half
  /// as many actions would fit.
  struct proof {
    static constexpr verdict has_shape = detail::check_shape(Work::times(), filled());
    static constexpr verdict is_complete =
        has_shape.ok() ? detail::check_complete(Work::times(), filled()) : has_shape;
    static constexpr verdict is_run = check_run(is_complete);
    static constexpr verdict is_ordered =
        is_run.ok() ? detail::check_order(Work::times(), filled()) : is_run;
    static constexpr verdict has_resources =
        is_ordered.ok() ? detail::check_resources(Work::times(), filled()) : is_ordered;
    static constexpr verdict found =
        has_resources.ok() ? detail::check_progress(Work::times(), filled()) : has_resources;
  };
  /// Maker of the verdict: proof::found, or validate() at run time.
  struct judge {
    static constexpr verdict make() {
      if constexpr (Work::by_compiler) return proof::found;
      verdict const found = validate(Work::times(), filled());
      return found.ok() ? check_run(found) : found;
    }
  };
  /// The result of all checks of the table. cost: at run time, that of the checks at the first call
  static constexpr verdict const& judgement() {
    if constexpr (is_free)
      if (verdict const& v = flow::judgement(); !v.ok()) return v;
    return once<Work::by_compiler, judge>::get();
  }

  /// The proved table, on which everything below depends.
  ///
  /// throws: pp::error if it is made at run time and not valid
  static constexpr auto const& table() {
    if constexpr (!Work::by_compiler)
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

  /// Maker of the simulated timeline. throws: as table()
  struct make_timeline {
    static constexpr auto make() { return simulate(Work::times(), table()); }
  };
  static constexpr auto const& timeline() { return once<Work::by_compiler, make_timeline>::get(); }

  /// Maker of the period, if steps overlap. throws: as table()
  struct make_period {
    static constexpr step_period make() {
      return period_of_steps<schedule>(Work::times(), table());
    }
  };
  static constexpr step_period const& period() {
    return once<Work::by_compiler, make_period>::get();
  }

  /// Slots of a boundary, between this stage and the next.
  static constexpr slot_count slots_after(int stage) {
    slot_count all =
        spare_slots(boundary_slots(Work::times(), table(), timeline(), stage), micro_batches);
    if constexpr (is_free) all = most_of(all, flow::slots_after(stage));
    return all;
  }
  /// The same once for each boundary.
  template <int Stage>
  struct make_slots {
    static constexpr slot_count make() { return slots_after(Stage); }
  };
  template <int Stage>
  static constexpr slot_count const& slots() {
    return once<Work::by_compiler, make_slots<Stage>>::get();
  }

  /// The first micro-batch whose values a stage keeps. needs: a valid table
  static constexpr int first_kept_of([[maybe_unused]] int chunk) {
    if constexpr (recomputes_ahead)
      if (!is_recomputed(table(), chunk)) return 0;
    return first_kept;
  }

  /// Versions of a stage's weights.
  static constexpr int version_slots([[maybe_unused]] int chunk) {
    if constexpr (is_free)
      return flow::version_slots(chunk);
    else
      return overlap == step_overlap::none ? 1 : 2;
  }
  /// Most micro-batches in flight in a stage at once.
  static constexpr int in_flight(int chunk) {
    int most = peak_in_chunk(table(), chunk);
    if constexpr (is_free)
      if (int const n = flow::in_flight(chunk); n > most) most = n;
    return most;
  }

  /// Most micro-batches between B, or R where it is, and W at once; 0 if neither is in the table.
  static constexpr int pending_slots(int chunk) {
    return flushed::splits_backward || recomputes_ahead ? detail::peak_pending(table(), chunk) : 0;
  }
};

}  // namespace pp::detail
