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
#include <pipe/base/sentence.hpp>
#include <pipe/passes/compile.hpp>
#include <pipe/plan/compiled/check_planned.hpp>
#include <pipe/plan/compiled/chunk_layout.hpp>
#include <pipe/plan/compiled/find_links.hpp>
#include <pipe/plan/compiled/flow_schedule.hpp>
#include <pipe/plan/compiled/make_plan.hpp>
#include <pipe/plan/compiled/memory_map.hpp>
#include <pipe/plan/compiled/stage_times.hpp>
#include <pipe/plan/compiled/step_memory.hpp>
#include <pipe/plan/compiled/ties.hpp>
#include <pipe/plan/compiled/update_ranges.hpp>
#include <pipe/plan/options/diagnose.hpp>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/proved.hpp>
#include <pipe/schedule/simulate.hpp>

namespace pp {

namespace detail {

/// Run-time counterpart of compiled_pipeline for plans: the same passes and the same layout, called
/// once, when the program first asks for the plan.
///
/// law: plan() equals Pipeline<M, Options...>::plan, where that is a constant
template <class M, class Options>
struct planned_pipeline {
  template <class Family>
  using option = typename Options::template get<Family>;
  using precision = option<option_family::precision>;
  using element = typename precision::element;
  using value = typename precision::value;
  using optimizer = option<option_family::optimizer>;
  using flow = option<option_family::schedule>;
  using schedule = flushed_of<flow>;
  static constexpr step_overlap overlap = overlap_of<flow>();
  static constexpr bool is_free = overlap == step_overlap::free;
  using backend = option<option_family::backend>;
  using averaging = option<option_family::averaging>;
  using prefetching = option<option_family::prefetching>;
  using offload = offload_of<option<option_family::offload>, backend>;
  using sum = option<option_family::sum>;
  using partition = option<option_family::partition>;
  using recompute = option<option_family::recompute>;
  using transport = typename option<option_family::transport>::transport;
  using zero = zero_of<option<option_family::zero>, transport>;
  static constexpr int devices = option<option_family::devices>::count;
  using model = M;
  using work = planned_pipeline;
  using step = step_memory<planned_pipeline>;

  static constexpr int stages = option<option_family::stages>::value,
                       ranks = ranks_of<option<option_family::stages>, schedule>(),
                       micro_batches = option<option_family::micro_batches>::value,
                       mini_batch = micro_batches * sum::leaves,
                       samples = option<option_family::micro_batch_size>::value,
                       threads = option<option_family::threads>::host_threads,
                       report_slots = report_slots_of<flow, transport>(ranks, mini_batch);
  static constexpr bool divides_gradients = zero::level > 1 && micro_batches == 1;
  static constexpr auto where = placement_of<option<option_family::stages>, schedule>();
  static constexpr int holder_count = holders(where, stages);
  using table_type = dynamic_table_on<std::remove_const_t<decltype(where)>>;
  /// As in pipeline_schedule: earlier micro-batches recompute, those from this one on keep all
  /// values.
  static constexpr int first_kept =
      !recompute::recomputes ? 0 : micro_batches - int(recompute::keeps_last);
  static constexpr bool recomputes_ahead = pp::detail::recomputes_ahead<schedule>(),
                        some_keep = first_kept < micro_batches || recomputes_ahead,
                        some_drop = first_kept > 0;

  static graph_view graph() { return *all().graph; }
  static int const* cuts() { return all().compilation.model().cuts; }
  /// By top-level layer.
  static view<unit_cost> costs() { return all().compilation.costs(); }
  static int group_count() { return all().compilation.model().numbers.count; }
  static run_time_problem const& times() { return all().problem; }
  static table_type const& table() { return all().table; }
  static int in_flight(int stage) { return all().in_flight[stage]; }
  static auto const& timeline() { return all().simulated; }
  /// Where steps overlap.
  static step_period period() { return period_of_steps<flow>(times(), table()); }
  static auto const& memory() { return all().map; }
  static view<link_plan> links() { return {all().links.begin(), all().link_count}; }
  /// throws: error if a rank exceeds the memory limit, or as compilation does
  static plan_of<stages, ranks> const& plan() {
    static plan_of<stages, ranks> const made = [] {
      require_memory(memory().rank, option<option_family::memory_limit>::value);
      return make_plan<planned_pipeline>(work::graph(), work::times(), memory());
    }();
    return made;
  }

 private:
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

  /// All results of the passes. The order of the members is that of their computation: each reads
  /// those before it.
  struct everything {
    std::unique_ptr<typename M::graph_type> graph;
    heap_compilation compilation;
    std::vector<stage> stage_of;
    run_time_problem problem;
    table_type table;
    decltype(simulate(problem, table)) simulated;
    memory_map<stages, ranks, holder_count> map;
    list<int, stages> in_flight;
    heap_array<link_plan> links;
    int link_count = 0;

    everything()
        : graph(checked_graph()),
          compilation(*graph,
                      {stages,
                       samples,
                       {int(sizeof(element)), int(sizeof(value)), true, zero::level > 1},
                       schedule::splits_backward,
                       rule_of<recompute>(),
                       recomputes_ahead},
                      [](auto const& layer_times, int units, int count, auto& cuts) {
                        cut_planned<partition_of<partition, option<option_family::stages>>>(
                            layer_times, units, count, cuts);
                      }),
          stage_of(lay_out_stages(compilation)), problem(make_problem(compilation, stage_of)),
          table(proved(problem)), simulated(simulate(problem, table)) {}
  };
  /// The passes' results. The memory map is made last, because it reads all others.
  static everything const& all() {
    static std::unique_ptr<everything const> const made = [] {
      auto e = std::make_unique<everything>();
      map_memory(*e);
      return e;
    }();
    return *made;
  }

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
  /// Times and saved bytes of every stage, see pipeline_schedule::make_problem.
  ///
  /// throws: error if the sums of a plan could overflow, see is_countable
  static run_time_problem make_problem(heap_compilation const& c,
                                       std::vector<stage> const& stage_of) {
    if (!is_countable(c.costs(), samples, micro_batches))
      throw_error<error>({"a step of ", micro_batches, " micro-batches of ", samples,
                          " samples: expected less than 2^62 FLOPs"});
    run_time_problem p;
    p.ranks = ranks;
    p.chunks = stages;
    p.micro_batches = micro_batches;
    for (int s = 0; s < stages; ++s) {
      stage const& one = stage_of[std::size_t(s)];
      heap_stage const& saves = some_drop ? *one.dropping : *one.keeping;
      p.costs.push_back(
          time_of_stage<partition>(c.costs().items, c.model().cuts[s], c.model().cuts[s + 1],
                                   samples, c.model().place_of_recompute(some_drop),
                                   saves.totals().bytes, hidden_percent_of<schedule>()));
    }
    return p;
  }
  /// The schedule's table. Throws pp::error if it is not valid.
  static table_type proved(run_time_problem const& problem) {
    table_type table = make_dynamic_table<schedule>(problem, where);
    verdict v = validate(problem, table);
    if (v.ok()) v = check_runs(table, recomputes_ahead && some_drop);
    if (v.ok() && recomputes_ahead) v = check_recomputed(problem, table);
    if (!v.ok())
      throw_error<error>({"schedule ", schedule::name, " is not valid for ", ranks, " ranks and ",
                          micro_batches, " micro-batches: ", v.text()});
    return table;
  }

  /// Fills e.map with the sizes and offsets that compiled_pipeline::memory() has. Launches are only
  /// counted, and tables of actions are not linked, since nothing runs.
  static void map_memory(everything& e) {
    compiled_model const& m = e.compilation.model();
    std::vector<detail::slot_count> slots;  // of the boundary before each stage and after the last
    slots.push_back(detail::slot_count{});
    for (int s = 0; s + 1 < stages; ++s)
      slots.push_back(
          detail::spare_slots(boundary_slots(e.problem, e.table, e.simulated, s), micro_batches));
    slots.push_back(detail::slot_count{});
    list<int, stages> versions;
    for (int s = 0; s < stages; ++s) {
      e.in_flight[s] = peak_in_chunk(e.table, s);
      versions[s] = overlap == step_overlap::none ? 1 : 2;
    }
    if constexpr (is_free) {  // see flow_schedule
      run_time_problem whole = e.problem;
      whole.micro_batches = periods_of_flow(ranks, mini_batch) * mini_batch;
      auto const run = make_dynamic_table<run_of_flow<flow, mini_batch>>(whole, where);
      auto const when = simulate(whole, run);
      for (int s = 0; s < stages; ++s) {
        if (int const n = peak_in_chunk(run, s); n > e.in_flight[s]) e.in_flight[s] = n;
        versions[s] = version_slots_of<flow>(run, ranks, rank_of(where, ranks, s));
        if (s + 1 < stages)
          slots[std::size_t(s) + 1] = most_of(
              slots[std::size_t(s) + 1],
              detail::spare_slots(boundary_slots(whole, run, when, s), whole.micro_batches));
      }
    }
    auto const rank = [](int s) { return rank_of(where, ranks, s); };
    list<long, stages> scratch;
    long of_updates = 0;
    list<parameter_place const*, stages> places;
    for (int s = 0; s < stages; ++s) {
      stage const& one = e.stage_of[std::size_t(s)];
      chunk_description& c = e.map.chunks[s];
      c.rank = rank(s);
      c.first_holder = holder_of(where, s, 0);
      c.parameters = places[s] = one.places.begin();
      c.parameter_count = int(one.places.size());
      c.updates = one.updates.begin();
      c.update_count = one.update_count;
      c.first_kept = recomputes_ahead && !is_recomputed(e.table, s) ? 0 : first_kept;
      chunk_facts f;
      if (one.keeping) f.keeping = one.keeping->totals();
      if (one.dropping) f.dropping = one.dropping->totals();
      f.keeping_micro_batches = micro_batches - c.first_kept;
      f.dropping_micro_batches = c.first_kept;
      f.holders = replicas(where, s);
      f.copies_weights = f.holders > 1 && transport::copies;
      if (s > 0) f.holders_before = replicas(where, s - 1);
      if (s + 1 < stages) f.holders_after = replicas(where, s + 1);
      f.in_flight = e.in_flight[s];
      if (is_free && f.keeping_micro_batches > 0) f.keeping_micro_batches = f.in_flight;
      if (is_free && f.dropping_micro_batches > 0) f.dropping_micro_batches = f.in_flight;
      f.version_slots = versions[s];
      f.keeps_state = overlap == step_overlap::confirmed;
      if (schedule::splits_backward || recomputes_ahead)
        f.pending_slots = detail::peak_pending(e.table, s);
      f.entered = slots[std::size_t(s)];
      f.left = slots[std::size_t(s) + 1];
      f.has_entered = s > 0;
      f.has_left = s + 1 < stages;
      f.copies_value = s > 0 && detail::is_copied<planned_pipeline>(rank(s - 1), c.rank);
      f.copies_gradient =
          s + 1 < stages && detail::is_copied<planned_pipeline>(rank(s + 1), c.rank);
      f.received_bytes = m.boundaries[s].forward_bytes;
      f.received_gradient_bytes = m.boundaries[s + 1].gradient_bytes;
      f.widths = m.values.widths;
      f.state_bytes = one.state * long(sizeof(element));
      f.zero = zero::level;
      f.divides_gradients = divides_gradients;
      f.offloads_state = offload::is_on;
      f.averages = averaging::averages;
      lay_out_chunk(f, c);
      count_launches(m, one, c);
      for (heap_stage const* of : {one.keeping.get(), one.dropping.get()})
        if (of != nullptr && of->totals().bytes.scratch > scratch[s])
          scratch[s] = of->totals().bytes.scratch;
      long const n = most_workspace_elements<optimizer, backend, element>(
          view<update_range>{one.updates.begin(), one.update_count});
      if (n > of_updates) of_updates = n;
    }
    of_updates = align_up(of_updates * long(sizeof(element)));
    long const of_groups =
        backend::template workspace_of<element>(e.compilation.groups(), samples, threads);
    graph_view const& g = e.compilation.graph();
    int const tie_count = count_ties(g), streams = count_streams(g.ops);
    heap_array<tie> ties(tie_count);
    find_ties(g, places.items, m.stage_of_unit, ties.begin());
    list<unsigned, ranks> read;
    e.map.place(where);
    for (chunk_holder const& h : e.map.holders.items)
      read[h.rank] |= step::inputs_read(e.stage_of[std::size_t(h.chunk)].any().totals(), g);
    for (int r = 0; r < ranks; ++r) {
      rank_description& of = e.map.rank[r];
      of.training_count = e.table.size(r);
      if constexpr (is_free)
        flow::for_each_in_period(ranks, r, mini_batch, [&](action const&) { ++of.flow_count; });
      for (action const& a : e.table.row(r)) of.evaluation_count += a.kind == action_kind::forward;
      lay_out_rank(e.map, r, scratch, threads, of_updates > of_groups ? of_updates : of_groups);
      step::take(of, r, read[r], g, streams, e.map.chunks.items, e.map.holders.items, ties.begin(),
                 tie_count);
    }
    e.links = heap_array<link_plan>(most_links(where, stages, tie_count));
    sink<link_plan> found{e.links.begin()};
    find_links(where, ranks, e.map.chunks.items, stages, view<tie>{ties.begin(), tie_count},
               sizeof(element), micro_batches, step::losses,
               slowest_rank<stages, ranks>(e.problem, e.map.chunks), found);
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
  using compiled = detail::planned_pipeline<M, options>;
  static auto const& plan() { return compiled::plan(); }
};

}  // namespace pp
