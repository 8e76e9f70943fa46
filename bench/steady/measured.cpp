// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap against steps with a barrier: two equal stages of about a millisecond on two
// cores, in turns. Prints: figure NAME VALUE
//
// steady_over_barrier_2      time of a step with a barrier over one without
// pipedream_step_over_1f1b   a step without a flush over one with it, each of 4 micro-batches
// ..._planned                the same of the plan, in which updates take no time: makespan and
// period
// ..._predicted              the same simulated with the times of actions and updates of steps with
//                            a barrier
// ..._with_own_times         the same, but steps without a barrier with their own times, which
// memory
//                            traffic of the other rank's update and of versions makes longer
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <pipe/pipe.hpp>

#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <pipe/train/executed_run.hpp>

#include "../peer/turns.hpp"

using namespace pp;
using bench::median;

namespace {

struct Even : Model<Input<512>, Repeat<4, Seq<Linear<512>, Tanh>>, MSE> {};
template <int MicroBatchCount, class Schedule>
using Two = Pipeline<Even, Stages<2>, ByCount, MicroBatches<MicroBatchCount>, MicroBatchSize<64>,
                     SGD, Schedule>;

template <class Trainer>
struct data_of {
  std::vector<float> const x = std::vector<float>(std::size_t(Trainer::samples) * 512, 0.1f);
  std::vector<typename Trainer::batch> batches(int count) const {
    return std::vector<typename Trainer::batch>(std::size_t(count), {x, x});
  }
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
template <class Trainer>
double step_of(Trainer& trainer, std::vector<typename Trainer::batch> const& all) {
  double const begin = seconds();
  trainer.train(all);
  return (seconds() - begin) / double(all.size());
}

/// A problem in measured times, in which updates take time: one chunk on each rank.
struct measured_problem : schedules::run_time_problem {
  std::vector<long> updates;  // by rank
  long time(schedules::action const& a) const {
    return a.kind == schedules::action_kind::update ? updates[std::size_t(a.chunk)]
                                                    : schedules::run_time_problem::time(a);
  }
  /// Of a step that ends when all ranks have updated.
  long update() const { return *std::max_element(updates.begin(), updates.end()); }
};
/// Times of a trainer's actions, by rank and kind, in nanoseconds.
template <class Trainer>
struct times_of {
  static constexpr int ranks = Trainer::compiled::ranks;
  std::vector<double> taken[ranks][4], updates[ranks];

  /// Adds those of a run. What a rank does between its last action and the end of its update counts
  /// as the update; nothing is waited for then.
  void add(executed_run const& run) {
    for (std::size_t rank = 0; rank < run.rows.size(); ++rank) {
      long before = 0;
      for (auto const& a : run.rows[rank]) {
        if (a.what.kind == schedules::action_kind::update)
          updates[rank].push_back(double(a.end - before));
        else
          taken[rank][int(a.what.kind)].push_back(double(a.end - a.start));
        before = a.end;
      }
    }
  }
  /// The problem of one step, of their medians.
  measured_problem problem() const {
    auto const time = [](std::vector<double> const& all) {
      return all.empty() ? 0 : long(median(all));
    };
    measured_problem p{
        {ranks, Trainer::compiled::plan().stage_count, Trainer::compiled::micro_batches, 0, {}},
        {}};
    for (int rank = 0; rank < ranks; ++rank) {
      auto const of = [&](schedules::action_kind kind) { return time(taken[rank][int(kind)]); };
      p.costs.push_back(
          {of(schedules::action_kind::forward),
           of(schedules::action_kind::backward_input) + of(schedules::action_kind::backward),
           of(schedules::action_kind::backward_weight)});
      p.updates.push_back(time(updates[rank]));
      std::printf("rank %d: F %ld, B %ld, W %ld, U %ld ns\n", rank, p.cost(rank).forward,
                  p.cost(rank).backward_input, p.cost(rank).backward_weight, p.updates.back());
    }
    return p;
  }
};
/// The times of a trainer's steps with a barrier. What a step takes beside the actions counts as
/// the update, of all ranks.
template <class Trainer>
measured_problem measured(int steps) {
  Trainer trainer;
  data_of<Trainer> const data;
  times_of<Trainer> all;
  for (int i = -5; i < steps; ++i) {
    step_result const r = trainer.step({data.x, data.x});
    if (i < 0) continue;
    executed_run const run = gather_executed(trainer);
    long makespan = 0;
    for (auto const& row : run.rows)
      for (auto const& a : row) makespan = std::max(makespan, a.end);
    for (auto& rank : all.updates) rank.push_back(r.seconds * 1e9 - double(makespan));
    all.add(run);
  }
  return all.problem();
}
/// The times of a trainer's steps that overlap, the last ones of each of some runs.
template <class Trainer>
measured_problem measured_in_flow(int runs, int steps) {
  Trainer trainer;
  auto const data = data_of<Trainer>{};
  auto const x = data.batches(steps);
  times_of<Trainer> all;
  for (int i = -2; i < runs; ++i) {
    trainer.train(x);
    if (i >= 0) all.add(gather_executed(trainer));
  }
  return all.problem();
}

/// The median time of a step of the first over that of the second, which take turns.
template <class First, class Second>
double ratio(char const* name, int rounds, int steps) {
  First first;
  Second second;
  data_of<First> const a;
  data_of<Second> const b;
  auto const x = a.batches(steps);
  auto const y = b.batches(steps);
  std::vector<double> ratios, one, two;
  for (int i = -2; i < rounds; ++i) {
    double const p = step_of(first, x), q = step_of(second, y);
    if (i < 0) continue;
    ratios.push_back(p / q), one.push_back(p), two.push_back(q);
  }
  std::printf("%s: %.3f ms over %.3f ms, %d rounds of %d steps\n", name, median(one) * 1e3,
              median(two) * 1e3, rounds, steps);
  double const r = median(ratios);
  std::printf("figure %s %.4f\n", name, r);
  return r;
}

/// Prints a figure, and beside it what was planned, and what times predict: those of steps with a
/// barrier alone, or for steps without one their own.
void print(char const* name, double figure, double planned, double predicted, double with_own) {
  std::printf("figure %s_planned %.4f\n", name, planned);
  std::printf("figure %s_predicted %.4f\n", name, predicted);
  std::printf("figure %s_over_predicted %.4f\n", name, figure / predicted);
  std::printf("figure %s_with_own_times %.4f\n", name, with_own);
  std::printf("figure %s_over_own_times %.4f\n", name, figure / with_own);
}

}  // namespace

int main() {
  constexpr int rounds = 40, steps = 40;
  // Of many micro-batches a barrier is a small part: few, so that it is seen.
  using barrier = Two<4, ZeroBubbleH2>;
  using steady = Two<4, Steady<ZeroBubbleH2>>;
  using flushed = Two<4, OneFOneB>;
  using dream = Two<4, PipeDream<>>;
  {
    double const figure = ratio<barrier, steady>("steady_over_barrier_2", rounds, steps);
    auto const& table = barrier::compiled::table();
    auto const a_step = [&](measured_problem const& p) {
      return double(schedules::simulate(p, table).makespan + p.update());
    };
    auto const overlapping = [&](measured_problem const& p) {
      return double(schedules::simulate(schedules::repeated(p, steps),
                                        schedules::repeated(p, table, steps))
                        .makespan) /
             steps;
    };
    auto const times = measured<barrier>(400), in_flow = measured_in_flow<steady>(100, steps);
    print("steady_over_barrier_2", figure,
          double(barrier::compiled::timeline().makespan) / steady::plan().period.value(),
          a_step(times) / overlapping(times), a_step(times) / overlapping(in_flow));
  }
  {
    double const figure = ratio<dream, flushed>("pipedream_step_over_1f1b", rounds, steps);
    auto const a_step = [&](measured_problem const& p) {
      return double(schedules::simulate(p, flushed::compiled::table()).makespan + p.update());
    };
    auto const without_flush = [&](measured_problem p) {
      p.micro_batches *= steps;
      auto const run = schedules::make_dynamic_table<PipeDream<false, 4>>(p);
      return double(schedules::simulate(p, run).makespan) / steps;
    };
    auto const times = measured<flushed>(400), in_flow = measured_in_flow<dream>(100, steps);
    print("pipedream_step_over_1f1b", figure,
          dream::plan().period.value() / double(flushed::compiled::timeline().makespan),
          without_flush(times) / a_step(times), without_flush(in_flow) / a_step(times));
  }
}
