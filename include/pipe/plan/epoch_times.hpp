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

/// Simulates the mini-batches of a shuffled epoch. full: the problem of full micro-batches
///
/// needs: validate(full, table); as many micro-batches as an accumulation has; as compose()
template <class Problem, class Table, class Slots = unbounded_slots>
epoch_times simulate_epoch(uneven_problem<Problem> full, Table const& table,
                           std::span<int const> lengths, composition_room const& room,
                           composition way, Slots const& slots = Slots{}) {
  composed_epoch const epoch = compose(lengths, room, way);
  std::vector<micro_batch_load> const loads = loads_of(epoch, lengths, room);
  std::size_t const all = epoch.size(), count = all < most_simulated ? all : most_simulated;
  epoch_times sum;
  sum.batches = all;
  for (std::size_t i = 0; i < count; ++i)
    for (int a = 0; a < room.accumulations; ++a) {
      auto const first = loads.begin() + long(i * all / count * epoch.micro_batches) +
                         long(a) * room.micro_batches;
      full.loads.assign(first, first + room.micro_batches);
      auto const when = simulate(full, table, slots);
      sum.makespan += double(when.makespan);
      sum.busy += double(when.total_busy());
    }
  sum.makespan *= double(all) / double(count);
  sum.busy *= double(all) / double(count);
  return sum;
}

}  // namespace pp::detail
