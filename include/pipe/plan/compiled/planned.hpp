// SPDX-License-Identifier: BSL-1.0
//
// The plan of a pipeline that is not compiled: the memory and time of a model on N ranks, even if
// its constants do not fit the compiler or its parameters do not fit this machine.
//
//     struct Large : Model<Tokens<32000, 1024>, Embedding<2048>, Positions, Repeat<1663, Block>,
//                          LayerNorm, Linear<32000>, CrossEntropy> {};
//     std::puts(explain<Planned<Large, Stages<128>, MicroBatches<512>>>().c_str());
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <memory>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/once.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/plan/compiled/check_planned.hpp>
#include <pipe/plan/compiled/chosen_cuts.hpp>
#include <pipe/plan/compiled/chunk_layout.hpp>
#include <pipe/plan/compiled/find_links.hpp>
#include <pipe/plan/compiled/fitting_cuts.hpp>
#include <pipe/plan/compiled/heap_problem.hpp>
#include <pipe/plan/compiled/make_plan.hpp>
#include <pipe/plan/compiled/memory_map.hpp>
#include <pipe/plan/compiled/proved_schedule.hpp>
#include <pipe/plan/compiled/step_memory.hpp>
#include <pipe/plan/compiled/ties.hpp>
#include <pipe/plan/compiled/update_ranges.hpp>
#include <pipe/plan/options/diagnose.hpp>

namespace pp {

namespace detail {

/// Run-time counterpart of compiled_pipeline for plans: the same passes and the same layout, called
/// once, when the program first asks for the plan.
///
/// Try: 0, or under a memory limit the number of a trial, of which the first that fits has the cuts
/// of number 0: see fitting_options
///
/// law: plan() equals Pipeline<M, Options...>::plan, where that is a constant
template <class M, class Options, int Try = 0>
struct planned_pipeline : proved_schedule<Options, planned_pipeline<M, Options, Try>> {
  using chosen = chosen_options<Options>;
  using chosen::stages, chosen::ranks, chosen::where, chosen::micro_batches, chosen::samples,
      chosen::threads, chosen::some_keep, chosen::some_drop, chosen::room_trial;
  using typename chosen::element, typename chosen::backend, typename chosen::partition,
      typename chosen::optimizer, typename chosen::schedule, typename chosen::flushed;
  using proved = proved_schedule<Options, planned_pipeline>;
  using model = M;
  using work = planned_pipeline;
  using step = step_memory<planned_pipeline>;
  static constexpr bool by_compiler = false;

  static graph_view graph() { return compilation().graph(); }
  static int const* cuts() { return compilation().model().cuts; }
  /// By top-level layer.
  static view<unit_cost> costs() { return compilation().costs(); }
  static compiled_model const& whole_model() { return compilation().model(); }
  /// The kernel groups, by number.
  static view<group> kernel_shapes() { return compilation().groups(); }
  static int group_count() { return compilation().model().numbers.count; }
  static run_time_problem const& times() { return once<false, make_problem>::get(); }
  /// See fitting_room.hpp.
  static auto const& room() { return once<false, make_room<planned_pipeline>>::get(); }
  template <int Trial>
  using in_trial = planned_pipeline<M, typename trial_options<Options, Trial>::type, Try>;
  static auto const& memory() { return mapped().map; }
  static view<link_plan> links() { return {mapped().links.begin(), mapped().link_count}; }
  /// throws: error if a rank exceeds the memory limit, or as compilation does
  static plan_of<stages, ranks> const& plan() {
    static plan_of<stages, ranks> const made = [] {
      require_memory(memory().rank, chosen::memory_limit);
      return make_plan<planned_pipeline>(work::graph(), work::times(), memory());
    }();
    return made;
  }

 private:
  /// The passes over the model's graph, which is built on the heap. throws: as check_planned()
  static heap_compilation const& compilation() {
    if constexpr (is_limited_in_room<chosen> && room_trial != fitting_trial)
      return in_trial<fitting_trial>::compilation();
    else
      return compile();
  }
  static heap_compilation const& compile() {
    static std::unique_ptr<typename M::graph_type> const g(checked_graph());
    static heap_compilation const made(
        *g, compile_options_of<chosen>(),
        [](uncut_model const& m, auto const& layer_times, int units, int count, auto& cuts) {
          if constexpr (is_cut_to_fit<chosen> && Try == 0)
            copy_cuts<1>(cuts);
          else if constexpr (is_cut_by_memory<chosen>)
            with_cut_problem<chosen, fixed_before>(
                layer_times, find_unit_bytes<chosen>(m, units, m.values.forward), units,
                [&](cut_problem const& p) {
                  partition_by_memory(p, cuts);
                  counted().resize(std::size_t(ranks));
                  count_bytes(p, cuts, counted());
                });
          else
            cut_planned<typename chosen::cutter>(layer_times, units, count, cuts);
        });
    return made;
  }
  template <int Tried, class Cuts>
  static void copy_cuts(Cuts& cuts) {
    using trial = planned_pipeline<M, Options, Tried>;
    if constexpr (Tried <= most_recuts)
      if (fullest_over(trial::memory().rank, chosen::memory_limit) >= 0)
        return copy_cuts<Tried + 1>(cuts);
    for (int s = 0; s <= stages; ++s) cuts[s] = trial::cuts()[s];
  }
  /// The bytes of each rank that the cuts were chosen by, without what is fixed.
  static std::vector<long>& counted() {
    static std::vector<long> bytes;
    return bytes;
  }
  /// What each rank has beside these, as the trials before have found.
  struct fixed_before {
    static long const* by_rank() {
      if constexpr (Try <= 1) {
        return nullptr;
      } else {
        using before = planned_pipeline<M, Options, Try - 1>;
        static list<long, ranks> bytes = [] {
          list<long, ranks> all;
          auto const& memory = before::memory().rank;
          find_fixed(before::fixed_before::by_rank(), memory, before::counted(), all);
          return all;
        }();
        return bytes.items;
      }
    }
  };
  template <class, class, int>
  friend struct planned_pipeline;

  /// A stage's programs and the contents of its chunk.
  struct stage {
    std::unique_ptr<heap_stage> keeping, dropping;
    heap_array<parameter_place> places;
    heap_array<update_range> updates;
    int update_count = 0;
    long state = 0;
    /// One of the two, for facts that both share, such as places of parameters.
    heap_stage const& any() const { return *(keeping ? keeping : dropping); }
  };
  struct make_stages {
    static auto make() { return lay_out_stages(compilation()); }
  };
  static std::vector<stage> const& stage_of() { return once<false, make_stages>::get(); }

  /// The memory of all ranks, and the traffic between them.
  struct mapping {
    memory_map<stages, ranks, chosen::holder_count> map;
    heap_array<link_plan> links;
    int link_count = 0;
  };
  static mapping const& mapped() { return once<false, make_mapping>::get(); }

  /// The model's graph, built on the heap. throws: as check_planned()
  static typename M::graph_type* checked_graph() {
    std::unique_ptr<typename M::graph_type> g(M::new_graph());
    check_planned<M, Options>(*g);
    return g.release();
  }
  /// Lays out the values of each stage, and finds the places and update ranges of its parameters.
  static std::vector<stage> lay_out_stages(heap_compilation const& c) {
    std::vector<stage> all_stages(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s) {
      stage& one = all_stages[std::size_t(s)];
      if (some_keep) one.keeping = std::make_unique<heap_stage>(c, s, false);
      if (some_drop) one.dropping = std::make_unique<heap_stage>(c, s, true);
      stage_range const& r = c.range(s);
      operand_places const& at = one.any().places();
      one.places = heap_array<parameter_place>(r.parameters.size());
      place_parameters(c.model(), r, at.parameters, at.transposed, one.places.begin());
      one.updates = heap_array<update_range>(r.parameters.size());
      sink<update_range> ranges{one.updates.begin()};
      one.state = find_update_ranges<optimizer, element>(c.model().parameters.part(r.parameters),
                                                         one.any().by_offset().items, ranges);
      one.update_count = ranges.count;
    }
    return all_stages;
  }
  /// See heap_problem.
  struct make_problem {
    static run_time_problem make() {
      run_time_problem p = heap_problem<chosen>(
          compilation(),
          [](int s) {
            stage const& one = stage_of()[std::size_t(s)];
            return (some_drop ? *one.dropping : *one.keeping).totals().bytes;
          },
          time_by<partition>{});
      if constexpr (room_trial != 0) p.rooms.assign(room().begin(), room().end());
      return p;
    }
  };

  /// The sizes and offsets that compiled_pipeline::memory() has. Launches are only counted, and
  /// tables of actions are not linked, since nothing runs.
  struct make_mapping {
    static mapping make() {
      mapping e;
      map_memory(e);
      return e;
    }
  };
  static void map_memory(mapping& e) {
    compiled_model const& m = compilation().model();
    list<long, stages> scratch;
    long of_updates = 0;
    list<parameter_place const*, stages> places;
    slot_count left;  // slots of the boundary after the stage before
    for (int s = 0; s < stages; ++s) {
      stage const& one = stage_of()[std::size_t(s)];
      chunk_description& c = e.map.chunks[s];
      c.parameters = view<parameter_place>{places[s] = one.places.begin(), int(one.places.size())};
      c.updates = view<update_range>{one.updates.begin(), one.update_count};
      chunk_facts f;
      if (one.keeping) f.keeping = one.keeping->totals();
      if (one.dropping) f.dropping = one.dropping->totals();
      f.state_bytes = one.state * long(sizeof(element));
      if (s > 0) f.entered = left;
      if (s + 1 < stages) f.left = left = proved::slots_after(s);
      f.received_bytes = m.boundaries[s].forward_bytes;
      f.received_gradient_bytes = m.boundaries[s + 1].gradient_bytes;
      describe_chunk<planned_pipeline>(s, f, c);
      count_launches(m, one, c);
      for (heap_stage const* of : {one.keeping.get(), one.dropping.get()})
        if (of != nullptr && of->totals().bytes.scratch > scratch[s])
          scratch[s] = of->totals().bytes.scratch;
      long const n = most_workspace_elements<optimizer, backend, element>(c.updates);
      if (n > of_updates) of_updates = n;
    }
    of_updates = align_up(of_updates * long(sizeof(element)));
    long const of_groups = backend::template workspace_of<planned_pipeline>(compilation().groups());
    graph_view const& g = compilation().graph();
    int const tie_count = count_ties(g), streams = count_streams(g.ops);
    heap_array<tie> ties(tie_count);
    find_ties(g, places.items, m.stage_of_unit, ties.begin());
    list<unsigned, ranks> read;
    e.map.place(where);
    for (chunk_holder const& h : e.map.holders.items)
      read[h.rank] |= step::inputs_read(stage_of()[std::size_t(h.chunk)].any().totals(), g);
    for (int r = 0; r < ranks; ++r) {
      rank_description& of = e.map.rank[r];
      of.training.count = proved::table().size(r);
      if constexpr (chosen::is_free)
        schedule::for_each_in_period(ranks, r, chosen::mini_batch,
                                     [&](action const&) { ++of.flow.count; });
      for (action const& a : proved::table().row(r))
        of.evaluation.count += a.kind == action_kind::forward;
      lay_out_rank(e.map, r, scratch, threads, of_updates > of_groups ? of_updates : of_groups);
      step::take(e.map, r, read[r], {g, streams, {ties.begin(), tie_count}});
    }
    e.links = heap_array<link_plan>(most_links(where, stages, tie_count));
    sink<link_plan> found{e.links.begin()};
    find_links<planned_pipeline>(e.map.chunks.items, view<tie>{ties.begin(), tie_count},
                                 slowest_rank<stages, ranks>(times(), e.map.chunks), found);
    e.link_count = found.count;
  }
  /// Counts the launches of a micro-batch, which the plan reports.
  static void count_launches(compiled_model const& m, stage const& one, chunk_description& c) {
    for (auto const& [of, set] :
         {std::pair{one.keeping.get(), &c.keeping}, std::pair{one.dropping.get(), &c.dropping}})
      for (program p : programs_of(m.splits_backward, m.recomputes_ahead))
        if (of != nullptr) set->programs[int(p)].count = of->order(p).count;
  }
};

/// The options of a plan: within a memory limit that limits the schedule, of the first trial that
/// fits.
template <class Set>
using planned_options =
    typename std::conditional_t<is_limited_in_room<chosen_options<Set>>,
                                trial_options<Set, fitting_trial>, std::type_identity<Set>>::type;

}  // namespace detail

/// The plan of Pipeline<M, Options...> without the pipeline: explain<Planned<M, Options...>>() and
/// Planned<M, Options...>::plan().
///
/// throws: pp::error when the plan is first asked for, if Pipeline<M, Options...> would not compile
template <class M, class... Options>
struct Planned {
  using options = detail::option_set<Options...>;
  static_assert(decltype(detail::diagnosed(detail::diagnose_options<options>()))::ok);
  using model = M;
  using compiled = detail::planned_pipeline<M, detail::planned_options<options>>;
  static auto const& plan() { return compiled::plan(); }
};

}  // namespace pp
