// SPDX-License-Identifier: BSL-1.0
//
// The last run of a trainer as one value: the actions that each rank executed, also in other
// processes and replicas, with the times of one clock. For drawings and reports:
//
//     executed_run const run = gather_executed(trainer);  // in all processes
//     for (executed_action const& a : run.rows[0])        // rank 0 of the first replica
//       std::printf("%s %d: %ld ns\n", schedules::short_name(a.what.kind), a.what.micro_batch,
//                   a.end - a.start);
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <climits>
#include <cstddef>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/clock_offset.hpp>
#include <pipe/transport/transport.hpp>

namespace pp {

/// The actions that all ranks of a pipeline, and of its replicas, executed in a run.
struct executed_run {
  int ranks = 1, replicas = 1, processes = 1;
  /// The actions of each rank in order, by replica and then by rank: row r * ranks + k. Times are
  /// nanoseconds from the start of the run in the process of the first action.
  std::vector<std::vector<executed_action>> rows{};
  /// Of steps that overlap: the recorded number of the first step, and the number of steps.
  /// Otherwise 0 and 1.
  int first_step = 0, steps = 1;
  /// The maximum error of times of one process relative to times of another: half of the least
  /// round trip between them. Clocks that drift apart between the run and the call add to the
  /// error.
  ///
  /// units: nanoseconds
  long clock_error = 0;
};

namespace detail {

/// The clock of a process, as compared by the others when they gather a run.
struct run_clock {
  static constexpr int meetings = 32;
  long began = 0;  ///< begin of the run by this clock, in nanoseconds
  meeting met[meetings];
};

/// Nanoseconds of this process's clock.
template <class = void>
long nanoseconds_of(std::chrono::steady_clock::time_point t) {
  return std::chrono::nanoseconds(t.time_since_epoch()).count();
}

/// A rank's actions in this process.
template <class Engine>
std::vector<executed_action> executed_here(Engine& engine, int rank) {
  executed_action const* const first = engine.executed(rank);
  return {first, first + engine.executed_count(rank)};
}

/// Finds the steps of which a run has actions.
template <class = void>
void find_steps(executed_run& run) {
  int first = INT_MAX, last = -1;
  for (auto const& row : run.rows)
    for (executed_action const& a : row) {
      if (a.step < first) first = a.step;
      if (a.step > last) last = a.step;
    }
  if (last >= 0) run.first_step = first, run.steps = last - first + 1;
}

/// Calls use(row) for the numbers of a process's rows: see executed_run.
template <class Use>
void for_each_row(process_place const& of, int ranks, Use const& use) {
  for (int r = of.first_rank; r < of.first_rank + of.ranks; ++r)
    use(std::size_t(of.replica) * std::size_t(ranks) + std::size_t(r));
}

/// Puts the times of all processes on the clock of process 0.
///
/// shape: places, clocks: by process; the rows have times from the start of the run in their
/// process
template <class = void>
void align_clocks(std::vector<process_place> const& places, std::vector<run_clock> const& clocks,
                  executed_run& run) {
  std::vector<long> begin;  // by process, on the clock of process 0
  long worst = 0, second = 0, first_start = LONG_MAX, zero = 0;
  for (std::size_t p = 0; p < places.size(); ++p) {
    clock_offset const o =
        p == 0 ? clock_offset{} : offset_of(clocks[p].met, clocks[0].met, run_clock::meetings);
    begin.push_back(clocks[p].began - o.value);
    second = o.error > worst ? worst : o.error > second ? o.error : second;
    worst = o.error > worst ? o.error : worst;
    for_each_row(places[p], run.ranks, [&](std::size_t row) {
      if (run.rows[row].empty() || run.rows[row][0].start + begin[p] >= first_start) return;
      first_start = run.rows[row][0].start + begin[p];
      zero = begin[p];
    });
  }
  run.clock_error = worst + second;
  for (std::size_t p = 0; p < places.size(); ++p)
    for_each_row(places[p], run.ranks, [&](std::size_t row) {
      for (executed_action& a : run.rows[row]) a.start += begin[p] - zero, a.end += begin[p] - zero;
    });
}

/// Gives the items of each process to all others; all processes call this.
///
/// shape: items[processes]: this process's item is given, the others are received
template <class Engine, class Item>
void share_items(Engine& engine, std::vector<Item>& items) {
  for (int p = 0; p < int(items.size()); ++p)
    engine.broadcast(p, reinterpret_cast<char*>(&items[std::size_t(p)]), long(sizeof(Item)));
}
/// The places of all processes.
template <class Engine>
std::vector<process_place> places_of_all(Engine& engine, int ranks) {
  std::vector<process_place> places;
  for (int p = 0; p < engine.processes(); ++p)
    places.push_back(process_place::of(p, engine.processes(), ranks));
  return places;
}
/// Gives the rows of each process to all others; all processes call this.
///
/// shape: rows[replicas * ranks]: those of this process are given, the others are received
/// throws: error if a process says that it has more items than any row has
template <class Engine, class Item>
void share_rows(Engine& engine, std::vector<process_place> const& places, int ranks,
                std::vector<std::vector<Item>>& rows) {
  for (std::size_t p = 0; p < places.size(); ++p)
    for_each_row(places[p], ranks, [&](std::size_t row) {
      auto const pass = [&](auto* items, std::size_t count) {
        engine.broadcast(int(p), reinterpret_cast<char*>(items), long(count * sizeof(*items)));
      };
      std::size_t count = rows[row].size();
      pass(&count, 1);
      if (count > std::size_t(1) << 24)
        throw_error<error>({"process ", p, " has ", count, " items of one rank"});
      rows[row].resize(count);
      pass(rows[row].data(), count);
    });
}

/// Gathers the last run of an engine whose ranks are in several processes; all processes call this.
/// The processes compare their clocks in some meetings, then each in turn gives its rows to all
/// others.
///
/// here: the ranks of this process. ranks: the number of ranks of a replica
/// cost: a broadcast for each process, two for each row, and 32 reductions
template <class Engine>
executed_run gather_from_processes(Engine& engine, process_place const& here, int ranks) {
  executed_run run{ranks, here.replicas, engine.processes()};
  run_clock mine{nanoseconds_of(engine.began()), {}};
  for (meeting& m : mine.met) {
    m.before = nanoseconds_of(std::chrono::steady_clock::now());
    engine.least(0);
    m.after = nanoseconds_of(std::chrono::steady_clock::now());
  }
  auto const places = places_of_all(engine, ranks);
  std::vector<run_clock> clocks(places.size(), mine);
  share_items(engine, clocks);
  run.rows.resize(std::size_t(here.replicas) * std::size_t(ranks));
  for_each_row(here, ranks, [&](std::size_t row) {
    run.rows[row] = executed_here(engine, int(row % std::size_t(ranks)));
  });
  share_rows(engine, places, ranks, run.rows);
  align_clocks(places, clocks, run);
  find_steps(run);
  return run;
}

}  // namespace detail

/// The last run of a trainer on all of its ranks; after train() with steps that overlap, the last
/// steps of which a rank has all actions and its update. If ranks are in several processes, all
/// processes call this function, like any other call on the trainer, and all get the same result.
///
/// law:    the actions of a row do not overlap; across processes an action that reads a value
///         starts at most clock_error before the action that made the value ends
/// throws: rank_error if another process has failed or does not make the call; as
///         Pipeline::executed
template <class Trainer>
executed_run gather_executed(Trainer const& trainer) {
  constexpr int ranks = Trainer::compiled::ranks;
  auto const processes = trainer.processes();
  auto& engine = *processes.parameters.engine;
  if constexpr (requires { engine.broadcast(0, nullptr, 0L); }) {
    return detail::gather_from_processes(engine, Trainer::compiled::transport::place(ranks), ranks);
  } else {
    executed_run run{ranks};
    for (int r = 0; r < ranks; ++r) run.rows.push_back(detail::executed_here(engine, r));
    detail::find_steps(run);
    return run;
  }
}

}  // namespace pp
