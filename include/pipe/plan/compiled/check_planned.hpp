// SPDX-License-Identifier: BSL-1.0
//
// The checks of a Pipeline's options for a model, for a plan that the program makes: what is one
// line from the compiler there is one sentence here.
#pragma once

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/type_name.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/plan/options/diagnose.hpp>

namespace pp::detail {

/// Checks what diagnose_pipeline does before there is a schedule, by the same functions. The
/// schedule's own checks follow when the table is made, that of the memory limit with the plan.
///
/// throws: error for the first of: no trained parameter; more stages than layers; a micro-batch
///         size that the model does not have; a partition that cannot cut it; parameters that
///         stages share where steps overlap
template <class M, class Options>
void check_planned(graph_view const& g) {
  using chosen = chosen_options<Options>;
  using partition = typename chosen::partition;
  constexpr int stages = chosen::stages, samples = chosen::samples;
  int const layers = g.units.count;
  if (!any_trained(g))
    throw_error<error>({"a model without trained parameters: expected at least 1 to train"});
  if (stages > layers)
    throw_error<error>(
        {"a model of ", layers, " layers: expected at most as many stages, got ", stages});
  if (long const most = most_samples_at_once(g); samples > most)
    throw_error<error>(
        {"micro-batches of ", samples, " samples: expected at most ", most, " for this model"});
  if (int const op = first_with_parts_of_groups(g, samples); op >= 0)
    throw_error<error>({"micro-batches of ", samples,
                        " samples: expected a multiple of the groups of SyncOver, ",
                        g.ops[op].attributes.batch().samples, " samples"});
  if (norms_one_number(g, samples))
    throw_error<error>(
        {"micro-batches of ", samples, " samples: a batch norm would have one number per channel"});
  if constexpr (requires { typename partition::profile; })
    if (!has_times_of<partition>(layers))
      throw_error<error>({"a profile of ", partition::profile::layers,
                          " layers: expected one of this model, which has ", layers});
  if (!can_cut<partition>(layers, stages))
    throw_error<error>({"a partition of ", layers,
                        " layers: expected ascending cuts, one less than ", stages, " stages"});
  if (chosen::is_free && any_tied(g))
    throw_error<error>({"schedule ", chosen::schedule::name,
                        ": stages update independently, so none may share a parameter (Tied)"});
}

/// Calls a partition policy, and checks the cuts of a user-defined one.
///
/// throws: error if they do not give every stage a layer
template <class Partition, class Costs, class Cuts>
void cut_planned(Costs const& times, int layers, int stages, Cuts& cuts) {
  Partition::cut(times, layers, stages, cuts);
  if (!are_cuts(cuts, layers, stages))
    throw_error<error>({"a partition of ", layers, " layers into ", stages,
                        " stages: expected ascending cuts from 0 to the number of layers"});
}

}  // namespace pp::detail
