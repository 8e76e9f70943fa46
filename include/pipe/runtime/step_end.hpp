// SPDX-License-Identifier: BSL-1.0
//
// The end of a run as a program: the operations between the last gradient and the next forward, in
// order, each with the facts under which it applies. This header defines when operations run;
// threads execute them in runtime/host/core/step_operations.hpp, streams in
// runtime/cuda/parameters.cuh.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp {

namespace detail {

/// Operations of the end of a step.
enum class step_op : unsigned char {
  accumulate,  ///< losses are added up; losses and gradients are joined over accumulations and
               ///< replicas
  barrier,     ///< barrier: all earlier writes of any rank are visible to every rank
  sum_ties,    ///< gradients of shared parameters are summed at their first place
  measure,     ///< squared norms of gradients, then clipping by value
  gather,      ///< losses and squared norms of all ranks become visible where the step is judged
  judge,       ///< loss, gradient norm, clipping factor, and whether the step is sound
  update,      ///< the optimizer's update
  share,       ///< replicas that divide the update give each other their results
  average,     ///< update of the averages of parameters
  commit,      ///< update of buffers from the statistics of the mini-batch
  transpose,   ///< transposed copies of parameters are renewed
  copy_ties    ///< shared parameters are copied from their first place to the later ones
};

/// Facts about a run, a bit set.
struct run_fact {
  enum : unsigned {
    trains = 1,         ///< the run computes gradients of parameters
    completes = 2,      ///< no later run accumulates onto its gradients
    updates = 4,        ///< the optimizer updates the parameters
    is_sound = 8,       ///< loss and norm are finite; known after step_op::judge
    has_ties = 16,      ///< parameters are shared between layers
    has_averages = 32,  ///< averages of parameters are kept
    was_written = 64,   ///< parameters were written from outside
    has_buffers = 128,  ///< there are buffers that follow statistics
    is_last = 256,      ///< the run is the last of the step
    divides = 512       ///< replicas divide the update: see ZeRO
  };
};

/// The facts that are known before a run: all but is_sound and was_written.
inline unsigned facts_of(pipeline_description const& d, job const& j) {
  bool const training = j.adds_gradients();
  return (training ? run_fact::trains : 0u) | (is_last_accumulation(j) ? run_fact::is_last : 0u) |
         (is_last_accumulation(j) && !j.part.is_continued ? run_fact::completes : 0u) |
         (training && j.update.applies ? run_fact::updates : 0u) |
         (d.ties.count > 0 ? run_fact::has_ties : 0u) |
         (d.averages() ? run_fact::has_averages : 0u) |
         (d.has_buffers ? run_fact::has_buffers : 0u) |
         (d.zero > 0 && j.part.replicas > 1 ? run_fact::divides : 0u);
}

/// A line of the program: an operation, and the facts that must all hold for it to run.
struct step_line {
  step_op what = step_op::barrier;
  unsigned needs = 0;
  constexpr bool applies(unsigned facts) const { return (needs & ~facts) == 0; }
};

/// The operations after the last action of a run, in order.
///
/// Gathering and judging do not need `trains`, as an evaluation has a loss as well. Ties are summed
/// before gradients are measured, so that the norm counts a shared parameter once. Judging comes
/// before any update, so that a step that is not sound changes nothing. Averages follow the updated
/// parameters, and transposed copies are renewed last, from final values.
inline constexpr step_line step_end[] = {
    {step_op::accumulate, 0},
    {step_op::barrier, run_fact::trains | run_fact::completes | run_fact::has_ties},
    {step_op::sum_ties, run_fact::trains | run_fact::completes | run_fact::has_ties},
    {step_op::measure, run_fact::trains | run_fact::is_last},
    {step_op::gather, run_fact::is_last},
    {step_op::judge, run_fact::is_last},
    {step_op::update, run_fact::trains | run_fact::updates | run_fact::is_sound},
    {step_op::share, run_fact::trains | run_fact::updates | run_fact::is_sound | run_fact::divides},
    {step_op::average,
     run_fact::trains | run_fact::updates | run_fact::is_sound | run_fact::has_averages},
    {step_op::commit,
     run_fact::trains | run_fact::updates | run_fact::is_sound | run_fact::has_buffers},
    {step_op::transpose, run_fact::trains | run_fact::updates | run_fact::is_sound},
};

/// The operations between a change of parameters, by an update or from outside, and the next
/// action. On the host the start of the next run serves as the barrier.
///
/// Transposed copies are renewed here only after a write from outside: after an update, step_end
/// has renewed them, and copy_ties renews the transposed copies of the places that it writes.
inline constexpr step_line copies_follow[] = {
    {step_op::barrier, run_fact::has_ties},
    {step_op::copy_ties, run_fact::has_ties},
    {step_op::transpose, run_fact::was_written},
};

/// The number of barriers at the end of a run. No rank updates before the last barrier, so a run
/// that fails at a barrier leaves all parameters unchanged.
///
/// law: 0 for a run that does not train
constexpr int count_barriers(unsigned facts) {
  int n = 0;
  for (step_line const& line : step_end)
    // In training a gather ends with a barrier as well.
    n += line.applies(facts) && (line.what == step_op::barrier ||
                                 (line.what == step_op::gather && facts & run_fact::trains));
  return n;
}

/// Calls execute(step_op, facts) for each line from number `first` on whose facts hold. `execute`
/// returns the facts, with any that it has established. Returns the facts at the end.
///
/// law: a fact that `execute` adds holds for the lines that follow, not for earlier ones
template <int Lines, class Execute>
constexpr unsigned run_lines(step_line const (&lines)[Lines], unsigned facts,
                             Execute const& execute, int first = 0) {
  for (int i = first; i < Lines; ++i)
    if (lines[i].applies(facts)) facts = execute(lines[i].what, facts);
  return facts;
}
/// The number of the first line of step_end that changes parameters.
inline constexpr int first_of_update = [] {
  int i = 0;
  while (step_end[i].what != step_op::update) ++i;
  return i;
}();

}  // namespace detail

}  // namespace pp
