// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap against steps with a barrier: two equal stages of about a millisecond on two
// cores, in turns. Prints: figure NAME VALUE
//
// steady_over_barrier_2      time of a step with a barrier over one without
// pipedream_step_over_1f1b   a step without a flush over one with it, each of 4 micro-batches
// ..._planned                the same of the plan, in which updates take no time: makespan and
// period
// ..._predicted              the same simulated with the times that actions and updates of steps
// with
//                            a barrier took
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <pipe/pipe.hpp>

#include <pipe/schedule/catalog.hpp>
#include <pipe/schedule/repeated.hpp>
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

/// A problem in measured times, in which updates take time.
struct measured_problem : run_time_problem {
  long update = 0;  // of a rank
  long time(action const& a) const {
    return a.kind == action_kind::update ? update : run_time_problem::time(a);
  }
};
/// The times of a trainer's steps with a barrier, each the median of `steps`, in nanoseconds. What
/// a step takes beside the actions counts as the update.
template <class Trainer>
measured_problem measured(int steps) {
  Trainer trainer;
  data_of<Trainer> const data;
  std::vector<double> taken[Trainer::compiled::ranks][4], rest;
  for (int i = -5; i < steps; ++i) {
    step_result const r = trainer.step({data.x, data.x});
    if (i < 0) continue;
    executed_run const run = gather_executed(trainer);
    long makespan = 0;
    for (std::size_t rank = 0; rank < run.rows.size(); ++rank)
      for (auto const& a : run.rows[rank]) {
        taken[rank][int(a.what.kind)].push_back(double(a.end - a.start));
        makespan = std::max(makespan, a.end);
      }
    rest.push_back(r.seconds * 1e9 - double(makespan));
  }
  auto const time = [&](int rank, action_kind kind) {
    auto const& all = taken[rank][int(kind)];
    return all.empty() ? 0 : long(median(all));
  };
  measured_problem p{{Trainer::compiled::ranks,
                      Trainer::compiled::plan().stage_count,
                      Trainer::compiled::micro_batches,
                      0,
                      {}}};
  for (int rank = 0; rank < p.ranks; ++rank)
    p.costs.push_back({time(rank, action_kind::forward),
                       time(rank, action_kind::backward_input) + time(rank, action_kind::backward),
                       time(rank, action_kind::backward_weight)});
  p.update = long(median(rest));
  for (int rank = 0; rank < p.ranks; ++rank)
    std::printf("rank %d: F %ld, B %ld, W %ld, U %ld ns\n", rank, p.cost(rank).forward,
                p.cost(rank).backward_input, p.cost(rank).backward_weight, p.update);
  return p;
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

/// Prints a figure, and beside it what was planned and what measured times predict.
void print(char const* name, double figure, double planned, double predicted) {
  std::printf("figure %s_planned %.4f\n", name, planned);
  std::printf("figure %s_predicted %.4f\n", name, predicted);
  std::printf("figure %s_over_predicted %.4f\n", name, figure / predicted);
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
    auto const times = measured<barrier>(400);
    auto const& table = barrier::compiled::table();
    double const one = double(simulate(times, table).makespan + times.update),
                 all = double(
                     simulate(repeated(times, steps), repeated(times, table, steps)).makespan);
    print("steady_over_barrier_2", figure,
          double(barrier::compiled::timeline().makespan) / steady::plan().period.value(),
          one * steps / all);
  }
  {
    double const figure = ratio<dream, flushed>("pipedream_step_over_1f1b", rounds, steps);
    auto times = measured<flushed>(400);
    double const one = double(simulate(times, flushed::compiled::table()).makespan + times.update);
    times.micro_batches *= steps;
    auto const run = make_dynamic_table<PipeDream<false, 4>>(times);
    print("pipedream_step_over_1f1b", figure,
          dream::plan().period.value() / double(flushed::compiled::timeline().makespan),
          double(simulate(times, run).makespan) / (one * steps));
  }
}
