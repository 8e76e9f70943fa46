// SPDX-License-Identifier: BSL-1.0
//
// An epoch of samples of several lengths under a schedule, simulated: how long it takes, and how
// much of it ranks wait.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <pipe/data/compositions.hpp>
#include <pipe/schedule/simulate.hpp>
#include <pipe/schedule/slots.hpp>
#include <pipe/schedule/uneven.hpp>

namespace pp::detail {

/// The simulated mini-batches of an epoch.
///
/// units: the problem's, of all mini-batches together
struct epoch_times {
  double makespan = 0, busy = 0;  ///< busy: of all ranks
  std::size_t batches = 0;

  /// The idle share of the ranks' time; of each mini-batch by its makespan.
  double bubble(int ranks) const { return makespan > 0 ? 1 - busy / (makespan * ranks) : 0; }
};

/// The mini-batches that are simulated of a longer epoch, at equal distances.
inline constexpr std::size_t most_simulated = 1000;

/// Simulates the mini-batches of an epoch. full: the problem of full micro-batches, with the loads
/// of all of the epoch. batches: of the epoch; micro_batches, accumulations: of a mini-batch
///
/// needs: validate(full, table); as many micro-batches as an accumulation has
template <class Problem, class Table, class Slots = unbounded_slots>
epoch_times simulate_loads(uneven_problem<Problem> full, Table const& table, std::size_t batches,
                           int micro_batches, int accumulations, Slots const& slots = Slots{}) {
  std::size_t const count = batches < most_simulated ? batches : most_simulated,
                    run = std::size_t(micro_batches) * full.each;
  std::vector<micro_batch_load> const loads = std::move(full.loads);
  epoch_times sum;
  sum.batches = batches;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t a = 0; a < std::size_t(accumulations); ++a) {
      std::size_t const number = i * batches / count * std::size_t(accumulations) + a;
      auto const first = loads.begin() + long(number * run);
      full.loads.assign(first, first + long(run));
      auto const when = simulate(full, table, slots);
      sum.makespan += double(when.makespan);
      sum.busy += double(when.total_busy());
    }
  sum.makespan *= double(batches) / double(count);
  sum.busy *= double(batches) / double(count);
  return sum;
}
/// The same of a shuffled epoch of samples of one input.
///
/// needs: as compose()
template <class Problem, class Table, class Slots = unbounded_slots>
epoch_times simulate_epoch(uneven_problem<Problem> full, Table const& table,
                           std::span<int const> lengths, composition_room const& room,
                           composition way, Slots const& slots = Slots{}) {
  composed_epoch const epoch = compose(lengths, room, way);
  full.loads = loads_of(epoch, lengths, room);
  return simulate_loads(std::move(full), table, epoch.size(), room.micro_batches,
                        room.accumulations, slots);
}

}  // namespace pp::detail
