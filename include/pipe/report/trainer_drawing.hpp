// SPDX-License-Identifier: BSL-1.0
//
// Drawings of a trainer: its plan, known at compile time, and its last run, measured.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/type_name.hpp>
#include <pipe/plan/compiled/compiled_pipeline.hpp>
#include <pipe/plan/options/options.hpp>
#include <pipe/plan/plan.hpp>
#include <pipe/report/drawing.hpp>
#include <pipe/report/kernels.hpp>
#include <pipe/report/layer_list.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/train/executed_run.hpp>

namespace pp {

namespace drawings {

/// The planned training step. Its times are the costs that the partition used: estimates in FLOPs
/// at full speed, or nanoseconds with ByProfile.
template <class Trainer>
drawing of_plan(std::string title = std::string(detail::type_name<typename Trainer::model>()) +
                                    ", predicted") {
  using compiled = typename Trainer::compiled;
  using partition = typename compiled::partition;
  constexpr bool profiled = requires { typename partition::profile; };
  drawing d = of_table(compiled::times(), compiled::table(), compiled::timeline(),
                       {std::move(title), profiled ? "ns" : "FLOP", "B"});
  if constexpr (compiled::overlap == detail::step_overlap::none)
    detail::set_floor(d, compiled::times(), compiled::table(), compiled::timeline());
  return d;
}

/// Several planned steps that overlap, to be drawn beside measured steps; 1: a step alone.
///
///     drawings::drawing const measured = drawings::of_last_run(trainer);
///     auto const predicted = drawings::of_plan<T>(measured.steps);
///     files::write_file("steps.html", drawings::as_html(predicted, measured));
///
/// throws: pp::error as of_steps does
template <class Trainer>
drawing of_plan(int steps) {
  using work = typename Trainer::compiled::work;
  drawing one = of_plan<Trainer>();
  if (steps == 1) return one;
  if constexpr (work::is_free) {
    auto const problem = schedules::repeated(work::times(), steps * work::sum::accumulations);
    using endless = detail::run_of_flow<typename work::schedule, work::mini_batch>;
    auto const run = schedules::make_dynamic_table<endless>(problem, work::where);
    drawing d = of_table(problem, run, schedules::simulate(problem, run), one.words);
    d.steps = steps;
    return d;
  } else {
    return of_steps(work::times(), work::table(), steps, one.words, work::sum::accumulations);
  }
}

}  // namespace drawings

namespace detail {

/// The times of some ranks' actions.
inline auto timeline_of(std::span<std::vector<executed_action> const> rows) {
  auto when = timeline<dynamic_rows<time_span>>{dynamic_rows<time_span>(int(rows.size())), true, 0};
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    for (executed_action const& e : rows[rank]) {
      when.spans.push(int(rank), {e.start, e.end});
      when.makespan = std::max(when.makespan, e.end);
    }
  return when;
}

/// Adds the ranks and transfers of a replica to those of the others. Its critical path is kept if
/// no replica of `makespan` took longer.
inline void add_replica(drawing& all, drawing replica, long makespan) {
  int const first = int(all.ranks.size());
  for (drawn_rank& r : replica.ranks) {
    if (replica.makespan < makespan)
      for (drawn_action& a : r.actions) a.critical = false;
    all.ranks.push_back(std::move(r));
  }
  for (drawn_transfer const& t : replica.transfers)
    all.transfers.push_back({first + t.from_rank, t.from, first + t.to_rank, t.to});
}

}  // namespace detail

namespace drawings {

/// A measured run of a trainer. Micro-batches of steps that overlap are numbered throughout; what
/// ranks did of other steps in that time is not drawn. On the critical path an action follows its
/// predecessor on the rank or the producer of its operand, whichever ended later; of several
/// replicas, the path is that of the one that took longest.
///
/// law:    a row for each rank of each replica: row r * ranks + k is rank k of replica r
/// throws: pp::error for a run of another trainer
template <class Trainer>
drawing of_run(executed_run const& run,
               std::string title = std::string(detail::type_name<typename Trainer::model>()) +
                                   ", measured") {
  using compiled = typename Trainer::compiled;
  auto question = compiled::times();
  // Planned transfer times do not apply: measured times include the transfers.
  question.hop = question.bandwidth = 0;
  // Of a run, or of all accumulations of a step.
  constexpr int of_step = compiled::overlap == detail::step_overlap::none ? compiled::micro_batches
                                                                          : compiled::mini_batch;
  question.micro_batches = run.steps * of_step;
  drawing d;
  d.words = {std::move(title), "ns", "B"};
  d.steps = run.steps;
  d.replicas = run.replicas;
  d.processes = run.processes;
  d.clock_error = run.clock_error;
  auto const all = detail::timeline_of(run.rows);
  d.makespan = all.makespan;
  d.bubble_by_makespan = all.bubble_by_makespan();
  d.bubble_by_stage_local_span = all.bubble_by_stage_local_span();
  for (int replica = 0; replica < run.replicas; ++replica) {
    std::span const rows(run.rows.data() + long(replica) * run.ranks, std::size_t(run.ranks));
    auto table = detail::dynamic_table_on(run.ranks, compiled::table().where, false);
    for (int rank = 0; rank < run.ranks; ++rank)
      for (executed_action const& e : rows[std::size_t(rank)]) {
        schedules::action a = e.what;
        a.micro_batch += (e.step - run.first_step) * of_step;
        a.version -= run.first_step;
        table.push(rank, a);
        table.trains = table.trains || e.what.kind != schedules::action_kind::forward;
      }
    detail::add_replica(d, of_table(question, table, detail::timeline_of(rows), d.words),
                        d.makespan);
  }
  return d;
}

/// The measured last run of a trainer, on all ranks. Called in all processes that have some, of
/// which one may write the page:
///
///     drawings::drawing const measured = drawings::of_last_run(trainer);
///     if (Mpi::process() == 0)
///       files::write_file("step.html", drawings::as_html(drawings::of_plan<T>(), measured));
///
/// throws: as gather_executed
template <class Trainer>
drawing of_last_run(Trainer const& trainer,
                    std::string title = std::string(detail::type_name<typename Trainer::model>()) +
                                        ", measured") {
  return of_run<Trainer>(gather_executed(trainer), std::move(title));
}

/// Watcher that records the kernels of a run and adds them to a drawing of it:
///
///     pp::drawings::seen_kernels<Trainer> kernels;
///     trainer.watch(batch, kernels.watcher());
///     pp::drawings::drawing measured = pp::drawings::of_last_run(trainer);
///     kernels.add_to(measured);
///
/// Only durations of kernels are known, so within an action they are drawn consecutively from its
/// start. Each of several processes has seen the kernels of its own ranks; gather() brings the
/// kernels of all other ranks.
template <class Trainer>
class seen_kernels {
 public:
  /// The function for Pipeline::watch. Ranks may call it concurrently.
  auto watcher() {
    return [this](launch_seen const& seen) {
      auto& mine = ranks_[std::size_t(seen.rank)];
      // A mini-batch of several accumulations is as many runs, the last of which is drawn.
      constexpr int of_accumulation = Trainer::compiled::micro_batches;
      int const accumulation = seen.micro_batch / of_accumulation;
      if (!mine.empty() && mine.back().accumulation != accumulation) mine.clear();
      mine.push_back({accumulation, seen.chunk, seen.micro_batch % of_accumulation, seen.which,
                      seen.what->group, seen.nanoseconds});
    };
  }

  /// Brings the kernels of all ranks, if these are in several processes. Called in all of them
  /// after the watched run, as gather_executed.
  void gather([[maybe_unused]] Trainer const& trainer) {
    using compiled = typename Trainer::compiled;
    auto const processes = trainer.processes();
    auto& engine = *processes.parameters.engine;
    if constexpr (requires { engine.broadcast(0, nullptr, 0L); }) {
      transports::process_place const here = compiled::transport::place(compiled::ranks);
      gathered_.assign(std::size_t(here.replicas) * ranks_.size(), {});
      detail::for_each_row(here, compiled::ranks,
                           [&](std::size_t row) { gathered_[row] = ranks_[row % ranks_.size()]; });
      detail::share_rows(engine, detail::places_of_all(engine, compiled::ranks), compiled::ranks,
                         gathered_);
    }
  }

  /// Adds the kernels to a drawing.
  ///
  /// needs: the drawing is of the watched run
  void add_to(drawing& d) const {
    auto const leaf = detail::leaf_names(typename Trainer::model::leaves{});
    using compiled = typename Trainer::compiled;
    int const replica = d.replicas == 1 ? 0 : compiled::transport::place(compiled::ranks).replica;
    bool const all = !gathered_.empty();
    auto const& rows = all ? gathered_ : ranks_;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      detail::drawn_rank& row = d.ranks[(all ? 0 : std::size_t(replica) * ranks_.size()) + i];
      auto next = rows[i].begin();
      for (detail::drawn_action const& a : row.actions)
        for (long time = a.start; next != rows[i].end() && belongs(*next, a.what); ++next) {
          // A detail must be inside its action: see drawn_rank.
          long const end = std::min(time + next->nanoseconds, a.end);
          row.details.push_back(
              {detail::group_text(compiled::group_at(next->group), leaf), time, end});
          time = end;
        }
    }
  }

 private:
  /// A launch that the watcher has seen.
  struct launched {
    int accumulation = 0, chunk = 0,
        micro_batch = 0;  // the micro-batch in the accumulation, as executed
    detail::program which = detail::program::forward;
    int group = 0;
    long nanoseconds = 0;
  };
  /// Whether a launch is part of action a. A program that is not F, B, W or R alone is B and W in
  /// one.
  static bool belongs(launched const& k, schedules::action const& a) {
    using enum schedules::action_kind;
    bool const same_program =
        k.which == detail::program::forward           ? a.kind == forward
        : k.which == detail::program::backward_input  ? a.kind == backward_input
        : k.which == detail::program::backward_weight ? a.kind == backward_weight
        : k.which == detail::program::recompute       ? a.kind == recompute
                                                      : a.kind == backward;
    return same_program && k.chunk == a.chunk && k.micro_batch == a.micro_batch;
  }

  // A list for each rank, so that ranks can add to their lists concurrently.
  std::vector<std::vector<launched>> ranks_ =
      std::vector<std::vector<launched>>(Trainer::compiled::ranks);
  std::vector<std::vector<launched>> gathered_;  // of all replicas' ranks
};

}  // namespace drawings

}  // namespace pp
