// SPDX-License-Identifier: BSL-1.0
//
// The end of a run as a program: the operations between the last gradient and the next forward, in
// their order, each with the facts under which it applies. Threads execute it in
// runtime/host/machine.hpp, streams in runtime/cuda/parameters.cuh; what an operation is comes from
// there, when it runs comes from here.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/job.hpp>

namespace pp {

namespace detail {

enum class step_op : unsigned char {
  meet,       ///< all that any rank did before is visible to every rank after
  sum_ties,   ///< gradients of shared parameters are added up where they are updated
  measure,    ///< squared norms of gradients, which are then clipped by value
  gather,     ///< losses and squared norms of all ranks are visible where they are judged
  judge,      ///< the loss, the norm, the factor of clipping, whether the step is sound
  update,     ///< the optimizer
  average,    ///< the averages of parameters
  commit,     ///< buffers take in what the mini-batch has added up for them
  transpose,  ///< transposed copies of parameters
  copy_ties   ///< shared parameters, from where they were updated
};

/// Facts about a run, as a set of bits.
struct run_fact {
  enum : unsigned {
    trains = 1,         ///< there are gradients
    completes = 2,      ///< and no later run adds to them
    updates = 4,        ///< the caller wants a step, not only gradients
    is_sound = 8,       ///< loss and norm are finite; known from step_op::judge on
    has_ties = 16,      ///< parameters are shared between places
    has_averages = 32,  ///< of parameters
    was_written = 64,   ///< parameters were changed from outside
    has_buffers = 128   ///< that follow statistics
  };
};

/// All that is known before the run; the rest is judged or asked for.
inline unsigned facts_of(pipeline_description const& d, job const& j) {
  bool const training = j.what == job::kind::train;
  return (training ? run_fact::trains : 0u) | (!j.is_continued ? run_fact::completes : 0u) |
         (training && j.updates ? run_fact::updates : 0u) |
         (d.tie_count > 0 ? run_fact::has_ties : 0u) | (d.averages ? run_fact::has_averages : 0u) |
         (d.has_buffers ? run_fact::has_buffers : 0u);
}

struct step_line {
  step_op what = step_op::meet;
  unsigned needs = 0;
  constexpr bool applies(unsigned facts) const { return (needs & ~facts) == 0; }
};

}  // namespace detail

/// After the last action of a run.
inline constexpr detail::step_line step_end[] = {
    {detail::step_op::meet,
     detail::run_fact::trains | detail::run_fact::completes | detail::run_fact::has_ties},
    {detail::step_op::sum_ties,
     detail::run_fact::trains | detail::run_fact::completes | detail::run_fact::has_ties},
    {detail::step_op::measure, detail::run_fact::trains},
    {detail::step_op::gather, 0},
    {detail::step_op::judge, 0},
    {detail::step_op::update,
     detail::run_fact::trains | detail::run_fact::updates | detail::run_fact::is_sound},
    {detail::step_op::average, detail::run_fact::trains | detail::run_fact::updates |
                                   detail::run_fact::is_sound | detail::run_fact::has_averages},
    {detail::step_op::commit, detail::run_fact::trains | detail::run_fact::updates |
                                  detail::run_fact::is_sound | detail::run_fact::has_buffers},
    {detail::step_op::transpose,
     detail::run_fact::trains | detail::run_fact::updates | detail::run_fact::is_sound},
};

/// After parameters have changed, by an update or from outside, and before the next action. What
/// starts the next run may be the meeting.
inline constexpr detail::step_line copies_follow[] = {
    {detail::step_op::meet, detail::run_fact::has_ties},
    {detail::step_op::copy_ties, detail::run_fact::has_ties},
    {detail::step_op::transpose, detail::run_fact::was_written},
};

namespace detail {

/// The meetings of the end of a run: no rank updates before the last.
constexpr int count_meetings(unsigned facts) {
  int n = 0;
  for (step_line const& line : step_end)
    n += line.applies(facts) &&
         (line.what == step_op::meet || (line.what == step_op::gather && facts & run_fact::trains));
  return n;
}

/// Calls execute(step_op, facts) for each line that applies under the facts known by then; it
/// returns them, with what it has found out.
template <int Lines, class Execute>
constexpr unsigned run_lines(step_line const (&lines)[Lines], unsigned facts,
                             Execute const& execute) {
  for (step_line const& line : lines)
    if (line.applies(facts)) facts = execute(line.what, facts);
  return facts;
}

}  // namespace detail

}  // namespace pp
