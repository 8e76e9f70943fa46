// SPDX-License-Identifier: BSL-1.0
//
// The load of a trainer's ranks in its last run: time and memory. The other ranks wait for the rank
// that is busy for most of a step.
//
//     step_result const r = trainer.step(batch);
//     for (rank_load const& load : rank_loads(trainer, r))
//       std::printf("busy %.0f %%, %ld bytes\n", 100 * load.busy, load.allocated_bytes);
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <pipe/base/libm.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/transport.hpp>

namespace pp {

/// One rank's share of a step, and its memory.
struct rank_load {
  /// Time in actions over the time of the run, 0 to 1; NaN if it is not known: for a rank of
  /// another process, before the first run, and on a GPU without settings.runtime.timeline.
  double busy = std::numeric_limits<double>::quiet_NaN();
  long planned_bytes = 0;    ///< as in plan.rank_bytes
  long allocated_bytes = 0;  ///< in this process
};

/// The load of all ranks in the run that returned `last`.
///
/// law:  planned_bytes is allocated_bytes for a rank of this process
/// cost: a visit to each action of the run, so some tenths of a microsecond per rank
template <class Trainer>
std::vector<rank_load> rank_loads(Trainer const& trainer, step_result const& last) {
  using compiled = typename Trainer::compiled;
  constexpr int ranks = compiled::ranks;
  transports::process_place const here = compiled::transport::place(ranks);
  std::vector<rank_load> all(ranks);
  std::vector<long> busy(ranks);
  long end = 0;
  for (int r = 0; r < ranks; ++r) {
    auto const at = std::size_t(r);
    all[at].planned_bytes = compiled::plan().rank_bytes_of(r, here.replicas, here.replica);
    all[at].allocated_bytes = trainer.allocated_bytes(r);
    // Without times executed() throws, and the bubble is not a number.
    if (!libm::isfinite(last.bubble) || all[at].allocated_bytes == 0) continue;
    for (executed_action const& a : trainer.executed(r)) {
      busy[at] += a.end - a.start;
      end = std::max(end, a.end);
    }
  }
  for (std::size_t r = 0; r < all.size(); ++r)
    if (busy[r] > 0) all[r].busy = double(busy[r]) / double(end);
  return all;
}

}  // namespace pp
