// SPDX-License-Identifier: BSL-1.0
//
// The first half of a compiled pipeline: what its stages cost, and the schedule with its proof. Nothing of the second half is asked
// for before the proof has succeeded, so a wrong schedule is one error.
#pragma once

#include <pipe/passes/compilation.hpp>
#include <pipe/schedule/validate.hpp>
#include <pipe/train/options.hpp>

namespace pp {

template <class M, class Options>
struct pipeline_schedule {
  template <option_family F>
  using option = typename Options::template get<F>;
  using element = typename option<option_family::precision>::element;
  using schedule = option<option_family::schedule>;

  static constexpr int stages = option<option_family::stages>::value;
  static constexpr int ranks = stages / schedule::chunks_per_rank;
  static constexpr int micro_batches = option<option_family::micro_batches>::value;
  static constexpr int samples = option<option_family::micro_batch_size>::value;

  using passes = compilation<M, stages, option<option_family::partition>, samples, int(sizeof(element)),
                             schedule::splits_backward, option<option_family::recompute>>;
  using recompute = typename passes::recompute;
  /// Micro-batches from this one on keep what backward reads; those before make dropped values again.
  static constexpr int first_kept = !recompute::recomputes ? 0 : micro_batches - int(recompute::keeps_last);
  static constexpr bool some_keep = first_kept < micro_batches, some_drop = first_kept > 0;

  /// Time of a layer per micro-batch: estimated, in FLOPs at full speed, or as the partition policy knows it.
  static constexpr chunk_cost time_of(int layer) {
    using partition = option<option_family::partition>;
    auto const estimate = [layer](auto const& costs) { return samples * estimated_time(costs[layer]); };
    chunk_cost c{estimate(passes::costs[0]), estimate(passes::costs[1]), estimate(passes::costs[2])};
    long const again = some_drop ? estimate(passes::again_costs) : 0;
    if constexpr (requires { typename partition::profile; })
      c = partition::time_of(layer, c, again);
    else
      c.backward_input += again;
    return c;
  }
  /// Times of every stage and micro-batch.
  static constexpr auto problem = [](auto...) {
    chunk_cost cost[stages];
    for (int s = 0; s < stages; ++s) {
      cost[s] = chunk_cost{0, 0, 0};
      for (int u = passes::cuts[s]; u < passes::cuts[s + 1]; ++u) {
        chunk_cost const layer = time_of(u);
        cost[s].forward += layer.forward;
        cost[s].backward_input += layer.backward_input;
        cost[s].backward_weight += layer.backward_weight;
      }
    }
    return unequal_times(ranks, micro_batches, cost);
  }();
  static constexpr auto table = make_table<schedule, ranks, micro_batches>(problem);
  // validate(), each question in a constant with an evaluation budget of its own: together they fit only half as many actions.
  static constexpr verdict has_shape = check_shape(problem, table);
  static constexpr verdict is_complete = has_shape.ok() ? check_complete(problem, table) : has_shape;
  static constexpr verdict is_ordered = is_complete.ok() ? check_order(problem, table) : is_complete;
  static constexpr verdict has_resources = is_ordered.ok() ? check_resources(problem, table) : is_ordered;
  static constexpr verdict proof = has_resources.ok() ? check_progress(problem, table) : has_resources;

  static constexpr auto diagnose() {
    if constexpr (proof.ok())
      return std::type_identity<nothing_wrong>{};
    else
      return diagnosis_of<wrong::schedule_is_not_valid, schedule, wrong::Because<proof.what>, wrong::OnRank<proof.rank>,
                          wrong::AtPosition<proof.position>,
                          wrong::ForAction<proof.which.kind, proof.which.chunk, proof.which.micro_batch>>();
  }
};

}  // namespace pp
