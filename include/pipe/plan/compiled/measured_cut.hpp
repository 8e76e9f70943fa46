// SPDX-License-Identifier: BSL-1.0
//
// Cuts of a model, judged by times that this program has measured: what a build with the profile
// will plan, without the build.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/passes/layer_profile.hpp>
#include <pipe/plan/compiled/chosen_cuts.hpp>
#include <pipe/plan/compiled/heap_problem.hpp>
#include <pipe/plan/options/options.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/validate.hpp>

namespace pp::detail {

/// A cut, and the step that it makes by measured times.
///
/// units: nanoseconds
struct judged_cut {
  std::vector<int> first_layer;  ///< by stage
  run_time_problem problem;      ///< of the stages
  long bottleneck = 0;  ///< time of the slowest stage per micro-batch, over the ranks of the stage
  long makespan = 0;    ///< of a step
  double bubble = 0;    ///< as plan.bubble
};

/// Judges cuts of model M for a pipeline with chosen_options Chosen by measured times.
template <class M, class Chosen>
class cut_judge {
 public:
  /// throws: error for times of another number of layers, or for fewer layers than stages
  explicit cut_judge(std::vector<layer_time> times)
      : times_(std::move(times)), graph_(M::new_graph()) {
    int const layers = graph().units.count, found = int(times_.size());
    if (found != layers)
      throw_error<error>(
          {"times of ", found, " layers: expected those of this model, which has ", layers});
    if (Chosen::stages > layers)
      throw_error<error>({"a model of ", layers, " layers: expected at most as many stages, got ",
                          Chosen::stages});
  }

  /// The cut of the pipeline's own partition policy; and ByCost's with the times as costs, which is
  /// ByProfile's.
  ///
  /// throws: error if the schedule is not valid for the times
  judged_cut before() const {
    return judge([](uncut_model const& m, auto const& costs, int layers, int stages, auto& cuts) {
      if constexpr (is_cut_by_memory<Chosen>)
        with_cut_problem<Chosen, nothing_fixed>(
            costs, find_unit_bytes<Chosen>(m, layers, m.values.forward), layers,
            [&](cut_problem const& p) { partition_by_memory(p, cuts); });
      else
        Chosen::cutter::cut(costs, layers, stages, cuts);
    });
  }
  judged_cut after() const {
    return judge([this](uncut_model const& m, auto const&, int layers, int stages, auto& cuts) {
      std::vector<long> measured;
      for (layer_time const& t : times_) measured.push_back(t.all());
      if constexpr (is_cut_by_memory<Chosen>)
        with_cut_times<Chosen, nothing_fixed>(
            measured.data(), find_unit_bytes<Chosen>(m, layers, m.values.forward), layers,
            [&](cut_problem const& p) { partition_by_memory(p, cuts); });
      else
        partition_of<ByCost, stages_option>::cut(measured, layers, stages, cuts);
    });
  }
  /// Estimated training times by layer, in units of one FLOP at full speed.
  std::vector<long> estimates() const {
    heap_gradients const gradients(graph(), Chosen::input_gradients);
    int const layers = graph().units.count;
    auto const costs = find_training_costs(graph(), gradients, layers);
    std::vector<long> all;
    for (int l = 0; l < layers; ++l) all.push_back(training_time(costs[l]));
    return all;
  }

 private:
  using stages_option = typename Chosen::template option<option_family::stages>;
  using flushed = typename Chosen::flushed;

  graph_view graph() const { return *graph_; }

  template <class Cut>
  judged_cut judge(Cut const& cut) const {
    constexpr auto const& where = Chosen::where;
    heap_compilation const c(graph(), compile_options_of<Chosen>(), cut);
    judged_cut j;
    j.problem = heap_problem<Chosen>(
        c, [&](int s) { return heap_stage(c, s, Chosen::some_drop).totals().bytes; },
        [this](int layer, chunk_cost const& estimate) {
          return cost_by_time(times_[std::size_t(layer)], estimate);
        });
    for (int s = 0; s < Chosen::stages; ++s) {
      j.first_layer.push_back(c.model().cuts[s]);
      chunk_cost const& t = j.problem.cost(s);
      long const time =
          (t.forward + t.backward_input + t.backward_weight + t.recompute) / replicas(where, s);
      if (time > j.bottleneck) j.bottleneck = time;
    }
    auto const table = make_dynamic_table<flushed>(j.problem, where);
    if (verdict const v = validate(j.problem, table); !v.ok())
      throw_error<error>({"schedule ", flushed::name, " is not valid for these times: ", v.text()});
    auto const timeline = simulate(j.problem, table);
    j.makespan = timeline.makespan;
    j.bubble = timeline.bubble_by_makespan();
    return j;
  }

  std::vector<layer_time> times_;
  std::unique_ptr<typename M::graph_type const> graph_;
};

}  // namespace pp::detail
