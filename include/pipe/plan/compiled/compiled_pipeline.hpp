// SPDX-License-Identifier: BSL-1.0
//
// The constants of a pipeline: the decisions of the passes and the schedule for one model and one
// set of options. Backends instantiate kernels on them (`element`, `samples`, `group_at`), the
// runtime walks them (`description`), and programs read them (`plan`).
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/dtype.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/once.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/plan/compiled/compiled_stage.hpp>
#include <pipe/plan/compiled/find_links.hpp>
#include <pipe/plan/compiled/make_plan.hpp>
#include <pipe/plan/compiled/memory_map.hpp>
#include <pipe/plan/compiled/pipeline_schedule.hpp>
#include <pipe/plan/compiled/step_memory.hpp>
#include <pipe/plan/compiled/ties.hpp>
#include <pipe/plan/options/diagnose.hpp>
#include <pipe/plan/plan.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/runtime_of.hpp>

namespace pp::detail {

/// Model M compiled with a valid option_set.
///
/// law: every member is a constant if by_compiler; otherwise those that depend on the schedule are
///      made once, at first use
template <class M, class Options>
struct compiled_pipeline : chosen_options<Options> {
  using chosen = chosen_options<Options>;
  using chosen::stages, chosen::ranks, chosen::where, chosen::micro_batches, chosen::samples,
      chosen::threads;
  using typename chosen::element, typename chosen::value, typename chosen::precision,
      typename chosen::backend, typename chosen::averaging, typename chosen::sum;
  static constexpr int reserved_multiprocessors = pp::detail::reserved_multiprocessors<
      typename chosen::template option<option_family::transport>>();
  using model = M;
  using leaves = typename M::leaves;
  using context = custom::update_context;
  using tensor = custom::tensor_update<element>;

  using work = pipeline_schedule<M, Options>;
  using passes = typename work::passes;
  static constexpr int groups = passes::groups;
  static constexpr int group_count() { return groups; }
  /// The kernels of chains; their launch numbers follow those of the groups.
  static constexpr view<chain_kernel> chain_kernels() { return work::chain_kernels(); }
  /// Whether group g needs kernels of its own: not if all of its launches are in chains.
  static constexpr bool is_launched_alone(int g) { return work::is_launched_alone(g); }
  static constexpr group group_at(int g) { return passes::group_at(g); }

  template <int S>
  using stage = compiled_stage<work, S>;
  using step = step_memory<work>;

  // ---- the schedule ----

  static constexpr bool by_compiler = work::by_compiler;
  static constexpr auto const& times() { return work::times(); }
  static constexpr auto const& table() { return work::table(); }
  static constexpr auto const& timeline() { return work::timeline(); }

  // ---- memory ----

  /// By kernel group: the number of parts that a launch is divided into among a rank's threads.
  static constexpr auto parts = [](int count, auto...) {
    list<short, groups> p;
    for (int g = 0; g < groups; ++g)
      p[g] = static_cast<short>(count == 1 ? 1 : backend::parts_for(group_at(g), samples, count));
    return p;
  }(threads);  // g++ 14 calls no function template for the first time within this function
  /// Bytes of workspace for the most demanding optimizer update of all stages.
  template <int... S>
  static constexpr long update_workspace(std::integer_sequence<int, S...>) {
    long most = 0;
    for (long const n : {most_workspace_elements<typename chosen::optimizer, backend, element>(
             stage<S>::update_ranges)...})
      if (n > most) most = n;
    return align_up(most * long(sizeof(element)));
  }
  /// Bytes of workspace per thread: the maximum over kernels and optimizer updates, which never
  /// overlap.
  static constexpr long workspace = [](auto...) {
    long const of_updates = update_workspace(std::make_integer_sequence<int, stages>{});
    long const of_groups =
        detail::runtime_of<backend>::template workspace_bytes<compiled_pipeline>();
    return of_updates > of_groups ? of_updates : of_groups;
  }();

  static constexpr int tie_count = count_ties(passes::outline);
  /// The ties of all stages, see find_ties.
  template <int... S>
  static constexpr auto list_ties(std::integer_sequence<int, S...>) {
    list<tie, tie_count> all;
    parameter_place const* const places[] = {stage<S>::places.items...};
    find_ties(passes::outline, places, passes::stage_of_unit.items, all.items);
    return all;
  }
  static constexpr auto ties = list_ties(std::make_integer_sequence<int, stages>{});
  static constexpr view<tie> all_ties() { return {ties.items, tie_count}; }
  /// Whether a mini-batch may be several accumulations: of GradientAccumulation, or one for each
  /// replica.
  static constexpr bool may_accumulate =
      sum::accumulations > 1 || connects_replicas<typename chosen::transport>;
  /// Whether predicted weights, or averages of weights, are made of the newest ones.
  static constexpr bool predicts_weights = predicts<typename chosen::schedule>();
  static constexpr bool approaches = averaging::averages || predicts_weights;
  /// Whether gradients are added outside of kernels: of shared parameters, or of accumulations.
  static constexpr bool adds_gradients = tie_count > 0 || may_accumulate;

  /// Maker of the memory map. Tables and slots depend on the schedule, so it is made by the
  /// compiler or at first use, as the schedule is: see once.
  struct make_memory {
    /// Describes all chunks, then each rank: its chunks and shared memory first, staging and
    /// bookkeeping after them.
    template <int... S>
    static constexpr auto lay_out(std::integer_sequence<int, S...>) {
      memory_map<stages, ranks, chosen::holder_count> m{{{stage<S>::describe()...}}, {}, {}};
      m.place(where);
      constexpr list<long, stages> scratch{{stage<S>::scratch_bytes()...}};
      graph_view const g = passes::outline;
      list<unsigned, ranks> read;
      constexpr list<unsigned, stages> reads{
          {step::inputs_read(stage<S>::any_programs::totals(), passes::outline)...}};
      for (chunk_holder const& h : m.holders.items) read[h.rank] |= reads[h.chunk];
      for (int r = 0; r < ranks; ++r) {
        rank_description& rank = m.rank[r];
        rank.training = view<action>{std::data(table().row(r)), table().size(r)};
        if constexpr (chosen::is_free) {
          using flow = flow_schedule<work>;
          rank.flow = view<action>{std::data(flow::period().row(r)), flow::period().size(r)};
          rank.predicts = predicts_weights;
        }
        rank.evaluation =
            view<action>{std::data(work::evaluation().row(r)), work::evaluation().size(r)};
        lay_out_rank(m, r, scratch, threads, workspace);
        step::take(m, r, read[r], {g, passes::stream_count, all_ties()});
      }
      return m;
    }
    static constexpr auto make() { return lay_out(std::make_integer_sequence<int, stages>{}); }
  };
  /// law: addresses and numbers of launches; their contents are made by description()
  static constexpr auto const& memory() { return once<by_compiler, make_memory>::get(); }
  /// Makes the launches of all stages.
  template <int... S>
  [[gnu::cold]] static void make_launches(std::integer_sequence<int, S...>) {
    (stage<S>::make_launches(), ...);
  }

  /// Whether there are buffers that steps update.
  static constexpr bool has_buffers = [](auto...) {
    for (parameter const& p : passes::outline.parameters)
      if (p.is_committed()) return true;
    return false;
  }();

  /// The pipeline as the runtime sees it, with its launches, which the first call makes.
  static pipeline_description description() {
    make_launches(std::make_integer_sequence<int, stages>{});
    auto const* const map = &memory();
    graph_view const g = passes::outline;
    pipeline_description d;
    d.ranks = ranks;
    d.devices = {chosen::devices, ranks};
    d.chunks = stages;
    d.micro_batches = micro_batches;
    d.samples = samples;
    d.accumulations = sum::accumulations;
    d.accumulation_room = sum::room;
    d.zero = chosen::zero::level;
    d.divides_gradients = chosen::divides_gradients;
    d.threads = threads;
    for (int s = 0; s + 1 < stages; ++s)
      if (int const n = pairs_of(replicas(where, s), replicas(where, s + 1)); n > d.pairs)
        d.pairs = n;
    for (chunk_description const& c : map->chunks)
      if (c.has_copies() && c.holders > d.copied_holders) d.copied_holders = c.holders;
    d.report_slots = step::report_slots;
    d.element_bytes = int(sizeof(element));
    d.parts = parts.items;
    d.workspace_bytes = workspace;
    d.losses = step::losses;
    d.loss_rows = int(step::loss_rows(g));
    if constexpr (chosen::lengths::block > 0)
      for (int i = 0; i < g.inputs.count; ++i)
        if (long const rows = samples * g.inputs[i].form.elements();
            is_axis(g.inputs[i], i) && rows > d.rows)
          d.rows = rows;
    d.chunk = map->chunks.items;
    d.holder = map->holders.items;
    d.rank = map->rank.items;
    d.parameter_count = g.parameters.count;
    d.streams = view<int>{passes::streams.items, passes::stream_count};
    d.ties = all_ties();
    d.inputs = g.inputs.count;
    for (int i = 0; i < d.inputs; ++i) {
      d.input_is_converted[i] = !g.inputs[i].is_ids && !g.inputs[i].of_loss;
      d.input_bytes[i] = step::batch_bytes(g, i);
    }
    d.label_bytes = step::batch_bytes(g, d.inputs);
    for (int i = 0; i < d.losses; ++i) {
      d.output[i].bytes = samples * passes::loss_inputs[i].elements * long(sizeof(value));
      d.output[i].axis = passes::loss_inputs[i].axis;
    }
    d.value_type = dtype_of<value>::value;
    d.scales_loss = precision::scales_loss;
    d.has_buffers = has_buffers;
    if constexpr (averaging::averages) d.average_decay = averaging::decay;
    return d;
  }

  // ---- the order of transfers ----

  /// Slots of each boundary between stages.
  static std::vector<detail::slot_count> slots_of_boundaries() {
    std::vector<detail::slot_count> all;
    [&]<int... S>(std::integer_sequence<int, S...>) {
      (all.push_back(work::template slots<S>()), ...);
    }(std::make_integer_sequence<int, stages - 1>{});
    return all;
  }
  /// The forward-only table in the form that communicate() reads.
  static auto evaluation_table() {
    using places = std::remove_const_t<decltype(chosen::where)>;
    auto forward = dynamic_table_on<places>(ranks, where, false);
    for (int r = 0; r < ranks; ++r)
      for (int i = 0; i < work::evaluation().size(r); ++i)
        forward.push(r, work::evaluation().at(r, i));
    return forward;
  }
  /// The compute, send and receive instructions of every rank for a transport that copies, made
  /// when the first trainer is constructed. Only the header of such a transport includes
  /// schedule/communication.hpp, to keep it out of pipe.hpp.
  struct order_training {
    static auto make() { return communicate(times(), table(), slots_of_boundaries()); }
  };
  struct order_evaluation {
    static auto make() { return communicate(times(), evaluation_table(), slots_of_boundaries()); }
  };
  struct make_instructions {
    static auto make() {
      auto const& training = once<false, order_training>::get();
      auto const& evaluation = once<false, order_evaluation>::get();
      list<rank_instructions, ranks> all;
      for (int r = 0; r < ranks; ++r)
        all[r] = rank_instructions{{std::data(training.row(r)), training.size(r)},
                                   {std::data(evaluation.row(r)), evaluation.size(r)}};
      return all;
    }
  };
  /// By rank: the instructions of training and of evaluation; views of tables that live until the
  /// end.
  static auto const& instructions() { return once<false, make_instructions>::get(); }

  // ---- the plan ----

  struct make_links {
    static constexpr auto make() {
      link_list<most_links(where, stages, tie_count)> all;
      sink<link_plan> found{all.items};
      find_links<compiled_pipeline>(memory().chunks.items, all_ties(),
                                    slowest_rank<stages, ranks>(times(), memory().chunks), found);
      all.count = found.count;
      return all;
    }
  };
  static constexpr view<link_plan> links() {
    auto const& all = once<by_compiler, make_links>::get();
    return view<link_plan>{all.items, all.count};
  }

  struct planner {
    static constexpr auto make() {
      return make_plan<compiled_pipeline>(passes::outline, times(), memory());
    }
  };
  static constexpr auto const& plan() { return once<by_compiler, planner>::get(); }

  // ---- checks that need the plan ----
  /// The diagnosis of the memory limit, for a plan that is a constant; otherwise
  /// check_at_construction() throws.
  static constexpr auto diagnose_memory() {
    if constexpr (by_compiler)
      return diagnose_memory_limit<compiled_pipeline>();
    else
      return std::type_identity<nothing_wrong>{};
  }
  /// Checks at run time what the compiler has not: nothing if by_compiler.
  ///
  /// throws: pp::error if the schedule is not valid or a rank exceeds the memory limit
  static void check_at_construction() {
    if constexpr (!by_compiler) {
      work::table();
      require_memory(memory().rank, chosen::memory_limit);
    }
  }
};

}  // namespace pp::detail
