// SPDX-License-Identifier: BSL-1.0
//
// The scheduling problem of a model that is compiled at run time.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/passes/heap_compilation.hpp>
#include <pipe/plan/compiled/stage_times.hpp>
#include <pipe/schedule/catalog/catalog.hpp>

namespace pp::detail {

/// The passes' options of a pipeline with chosen_options Chosen.
template <class Chosen>
compile_options compile_options_of() {
  return {Chosen::stages,
          Chosen::samples,
          Chosen::widths,
          Chosen::flushed::splits_backward,
          rule_of<typename Chosen::recompute>(),
          Chosen::recomputes_ahead,
          Chosen::input_gradients};
}

/// Times and saved bytes of every stage, as pipeline_schedule::problem has them. bytes_of(stage):
/// of the stage's layout. time_of: see time_of_layer
///
/// throws: error if the sums of a plan could overflow, see is_countable
template <class Chosen, class BytesOf, class TimeOf>
run_time_problem heap_problem(heap_compilation const& c, BytesOf const& bytes_of,
                              TimeOf const& time_of) {
  constexpr int micro_batches = Chosen::micro_batches, samples = Chosen::samples;
  if (!is_countable(c.costs(), samples, micro_batches))
    throw_error<error>({"a step of ", micro_batches, " micro-batches of ", samples,
                        " samples: expected less than 2^62 FLOPs"});
  run_time_problem p;
  p.ranks = Chosen::ranks;
  p.chunks = Chosen::stages;
  p.micro_batches = micro_batches;
  for (int s = 0; s < Chosen::stages; ++s)
    p.costs.push_back(time_of_stage(c.costs().items, c.model().cuts[s], c.model().cuts[s + 1],
                                    samples, c.model().place_of_recompute(Chosen::some_drop),
                                    bytes_of(s), hidden_percent_of<typename Chosen::flushed>(),
                                    time_of));
  return p;
}

}  // namespace pp::detail
