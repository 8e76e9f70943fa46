// SPDX-License-Identifier: BSL-1.0
//
// Steps of the run that are made again, and what came of the comparison.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/checkpoint/replay.hpp>
#include <pipe/checkpoint/step_log.hpp>

#include "gpt.hpp"
#include "keep.hpp"

/// What the program ends with when a step that is made again has other bits.
inline constexpr int code_of_difference = 3;

/// Makes the steps after the newest checkpoint before o.replay again, or all from the first one on
/// where there is none, and compares them with the log of the run.
///
/// needs: the options are those of the run, as earlier_run sees to
///
/// throws: pp::error if there is nothing to compare
template <class Trainer, class MakeStep>
void replay_steps(options const& o, Trainer& trainer, MakeStep const& make_step) {
  if (has_no_flush<Trainer> && Trainer::compiled::plan().stages[0].versions == 1)
    throw pp::error("--replay: under " + o.schedule +
                    " a step depends on those that were in progress with it, which are not made "
                    "again");
  std::vector<pp::step_record> const log = pp::read_step_log(step_log_of(o));
  if (log.empty() || log.back().step < o.replay)
    throw pp::error("--replay: '" + step_log_of(o) + "' has no step " + std::to_string(o.replay) +
                    (log.empty() ? "" : ", the last one is " + std::to_string(log.back().step)));
  pp::found_checkpoint const from = pp::newest_checkpoint(o.checkpoints, o.replay - 1);
  if (!from.path.empty()) trainer.load(from.path);
  std::printf("replay: from %s\n", from.path.empty() ? "the beginning, as no checkpoint is before"
                                                     : ("'" + from.path + "'").c_str());
  pp::replay_report const r = pp::replay(trainer, log, make_step, o.replay);
  long const last = trainer.steps() - (r.ok() ? 0 : 1);  // that is as recorded
  if (last > from.steps)
    std::printf(
        "replay: steps %ld to %ld are bit for bit as recorded: loss and gradient norm of each, "
        "hash of all parameters after %ld of them\n",
        from.steps + 1, last, r.hashes);
  if (!r.ok()) warn("replay: " + r.difference, code_of_difference);
}
