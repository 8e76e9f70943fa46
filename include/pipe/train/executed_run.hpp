// SPDX-License-Identifier: BSL-1.0
//
// The last run of a trainer as one value: what each rank executed, also the ranks of other
// processes and replicas, with times of one clock. For drawings and reports:
//
//     executed_run const run = gather_executed(trainer);  // in all processes
//     for (executed_action const& a : run.rows[0])        // rank 0 of the first replica
//       std::printf("%s %d: %ld ns\n", short_name(a.what.kind), a.what.micro_batch, a.end -
//       a.start);
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <climits>
#include <cstddef>
#include <vector>

#include <pipe/runtime/job.hpp>
#include <pipe/transport/clock_offset.hpp>
#include <pipe/transport/transport.hpp>

namespace pp {

/// What all ranks of a pipeline, and of its replicas, executed in a run.
struct executed_run {
  int ranks = 1, replicas = 1, processes = 1;
  /// The actions of each rank in order, by replica and then by rank: row r * ranks + k. Times are
  /// nanoseconds from the start of the run where its first action was.
  std::vector<std::vector<executed_action>> rows;
  /// The most by which times of two processes may be misplaced to each other: half of the least
  /// round trip between them. Clocks that drift apart between the run and the call add to it.
  ///
  /// units: nanoseconds
  long clock_error = 0;
};

namespace detail {

/// A process as the others see it when they gather a run.
struct run_part {
  static constexpr int meetings = 32;
  process_place place;
  long began = 0;  ///< of its clock, in nanoseconds
  meeting met[meetings];
};

/// Nanoseconds of this process's clock.
inline long nanoseconds_of(std::chrono::steady_clock::time_point t) {
  return std::chrono::nanoseconds(t.time_since_epoch()).count();
}

/// A rank's actions in this process.
template <class Engine>
std::vector<executed_action> executed_here(Engine& engine, int rank) {
  executed_action const* const first = engine.executed(rank);
  return {first, first + engine.executed_count(rank)};
}

/// Puts the times of all processes on the clock of process 0.
///
/// needs: parts[run.processes]; the rows have times from the start of the run in their process
inline void align_clocks(std::vector<run_part> const& parts, executed_run& run) {
  std::vector<long> begin;  // by process, on the clock of process 0
  long worst = 0, second = 0, first_start = LONG_MAX, zero = 0;
  auto const for_each_row = [&](run_part const& p, auto const& use) {
    for (int r = 0; r < p.place.ranks; ++r)
      use(run.rows[std::size_t(p.place.replica) * std::size_t(run.ranks) +
                   std::size_t(p.place.first_rank + r)]);
  };
  for (run_part const& p : parts) {
    clock_offset const o =
        &p == parts.data() ? clock_offset{} : offset_of(p.met, parts[0].met, run_part::meetings);
    begin.push_back(p.began - o.value);
    second = o.error > worst ? worst : o.error > second ? o.error : second;
    worst = o.error > worst ? o.error : worst;
    for_each_row(p, [&](std::vector<executed_action> const& row) {
      if (row.empty() || row[0].start + begin.back() >= first_start) return;
      first_start = row[0].start + begin.back();
      zero = begin.back();
    });
  }
  run.clock_error = worst + second;
  for (std::size_t p = 0; p < parts.size(); ++p)
    for_each_row(parts[p], [&](std::vector<executed_action>& row) {
      for (executed_action& a : row) a.start += begin[p] - zero, a.end += begin[p] - zero;
    });
}

/// Gathers the last run of an engine whose ranks are in several processes, which all call it: they
/// meet some times to compare their clocks, then each in turn gives its rows to all others.
///
/// here: the ranks of this process. ranks: of a replica
/// cost: a run of n processes is n broadcasts for each rank of a process, and 32 reductions
template <class Engine>
executed_run gather_from_processes(Engine& engine, process_place const& here, int ranks) {
  executed_run run{ranks, here.replicas, engine.processes(), {}, 0};
  run_part mine{here, nanoseconds_of(engine.began()), {}};
  for (meeting& m : mine.met) {
    m.before = nanoseconds_of(std::chrono::steady_clock::now());
    engine.least(0);
    m.after = nanoseconds_of(std::chrono::steady_clock::now());
  }
  std::vector<run_part> parts(std::size_t(run.processes), mine);
  run.rows.resize(std::size_t(here.replicas) * std::size_t(ranks));
  auto const pass = [&](int from, auto* items, std::size_t count) {
    engine.broadcast(from, reinterpret_cast<char*>(items), long(count * sizeof(*items)));
  };
  for (int p = 0; p < run.processes; ++p) {
    pass(p, &parts[std::size_t(p)], 1);
    process_place const& there = parts[std::size_t(p)].place;
    for (int r = there.first_rank; r < there.first_rank + there.ranks; ++r) {
      auto& row = run.rows[std::size_t(there.replica) * std::size_t(ranks) + std::size_t(r)];
      if (p == engine.process()) row = executed_here(engine, r);
      std::size_t count = row.size();
      pass(p, &count, 1);
      row.resize(count);
      pass(p, row.data(), count);
    }
  }
  align_clocks(parts, run);
  return run;
}

}  // namespace detail

/// The last run of a trainer on all of its ranks. If they are in several processes, all of these
/// call it, like any other call on the trainer, and all get the same result.
///
/// law:    the actions of a row do not overlap; across processes an action that reads a value
///         starts at most clock_error before the one that made it ends
/// throws: rank_error if another process has failed or does not call it; as Pipeline::executed
template <class Trainer>
executed_run gather_executed(Trainer const& trainer) {
  constexpr int ranks = Trainer::compiled::ranks;
  auto const processes = trainer.processes();
  auto& engine = *processes.parameters.engine;
  if constexpr (requires { engine.broadcast(0, nullptr, 0L); }) {
    return detail::gather_from_processes(engine, Trainer::compiled::transport::place(ranks), ranks);
  } else {
    executed_run run{ranks, 1, 1, {}, 0};
    for (int r = 0; r < ranks; ++r) run.rows.push_back(detail::executed_here(engine, r));
    return run;
  }
}

}  // namespace pp
