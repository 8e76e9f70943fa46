// SPDX-License-Identifier: BSL-1.0
//
// How long a pipelined step takes against what the simulator says, and how long a hand-off between two ranks takes.
//
// The simulator is fed with the stages' times, medians of what they take one after the other on one rank. The step is timed from
// its first action to its last; both take turns. On fewer cores than stages no schedule can be faster than all work over all
// cores, and that is taken instead where it is longer.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

#include <pipe/pipe.hpp>

#include "peer/turns.hpp"

using namespace pp;
using bench::median;

namespace {

constexpr int width = 1024, rounds = 60;

/// As many equal stages as layers, of about a millisecond forward.
template <int Stages>
struct Even : Model<Input<width>, Repeat<Stages, Seq<Linear<width>, Tanh>>, MSE> {};

/// The same stages in turn on one rank.
template <int Chunks>
struct InTurn {
  static constexpr char const* name = "in turn";
  static constexpr placement where = placement::loop;
  static constexpr int chunks_per_rank = Chunks;
  static constexpr bool trains = true, splits_backward = false;
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    for (int mb = 0; mb < problem.micro_batches; ++mb) {
      for (int c = 0; c < Chunks; ++c) table.push(0, {action_kind::forward, c, mb});
      for (int c = Chunks - 1; c >= 0; --c) table.push(0, {action_kind::backward, c, mb});
    }
  }
};

template <class Trainer>
double makespan(Trainer const& t) {
  long first = t.executed(0)[0].start, last = 0;
  for (int r = 0; r < Trainer::plan.rank_count; ++r)
    for (executed_action const& a : t.executed(r)) last = std::max(last, a.end);
  return double(last - first);
}

/// Measured over simulated.
template <int StageCount, int MicroBatchCount>
double compare() {
  using model = Even<StageCount>;
  using cut = std::conditional_t<StageCount == 2, Cut<2>, Cut<2, 4, 6>>;
  using options = Pipeline<model, Stages<StageCount>, cut, MicroBatches<MicroBatchCount>, MicroBatchSize<96>>;
  using serial =
      Pipeline<model, Stages<StageCount>, cut, MicroBatches<MicroBatchCount>, MicroBatchSize<96>, InTurn<StageCount>>;
  options pipelined;
  serial in_turn;
  std::vector<float> const x(std::size_t(options::samples) * width, 0.1f);

  std::array<std::vector<double>, 2 * StageCount> times;  // forward, backward of each stage
  std::vector<double> steps;
  for (int round = -3; round < rounds; ++round) {
    in_turn.step({x, x});
    pipelined.step({x, x});
    if (round < 0) continue;
    for (executed_action const& a : in_turn.executed(0))
      times[std::size_t(2 * a.what.chunk + (a.what.kind == action_kind::backward))].push_back(double(a.end - a.start));
    steps.push_back(makespan(pipelined));
  }

  chunk_cost cost[StageCount];
  double work = 0;
  std::printf("%d stages, %d micro-batches, %d rounds in turns; medians in microseconds\n", StageCount, MicroBatchCount,
              rounds);
  for (int s = 0; s < StageCount; ++s) {
    double const forward = median(times[std::size_t(2 * s)]), backward = median(times[std::size_t(2 * s + 1)]);
    std::printf("  stage %d: forward %.0f, backward %.0f\n", s, forward / 1e3, backward / 1e3);
    cost[s] = chunk_cost{long(forward), 0, long(backward)};
    work += (forward + backward) * MicroBatchCount;
  }
  auto const problem = unequal_times(StageCount, MicroBatchCount, cost);
  auto const table = make_table<OneFOneB, StageCount, MicroBatchCount>(problem);
  double const by_cores = work / std::min(StageCount, int(allowed_cores()));
  double const simulated = double(simulate(problem, table).makespan), least = std::max(simulated, by_cores);
  double const measured = median(steps);
  std::printf("  simulated %.0f, all work over all cores %.0f, measured %.0f\n", simulated / 1e3, by_cores / 1e3,
              measured / 1e3);
  return measured / least;
}

/// Nanoseconds from a publication on one core to its reader on another: half a round trip, both spinning.
double hand_off() {
  constexpr int trips = 2000, runs = 101;
  in_process board(2, patience{});
  failure_flag never{false};
  std::vector<double> each;
  for (int run = 0; run < runs; ++run) {
    board.reset();
    std::thread other([&] {
      pin_this_thread(1);
      for (int i = 0; i < trips; ++i) {
        board.wait(0, milestone::forward, i, never);
        board.publish(1, milestone::forward, i);
      }
    });
    std::thread one([&] {
      pin_this_thread(0);
      board.publish(0, milestone::forward, 0);
      board.wait(1, milestone::forward, 0, never);  // the other one is awake
      auto const start = std::chrono::steady_clock::now();
      for (int i = 1; i < trips; ++i) {
        board.publish(0, milestone::forward, i);
        board.wait(1, milestone::forward, i, never);
      }
      std::chrono::duration<double, std::nano> const took = std::chrono::steady_clock::now() - start;
      each.push_back(took.count() / (trips - 1) / 2);
    });
    one.join();
    other.join();
  }
  return median(each);
}

}  // namespace

int main() {
  if (allowed_cores() < 2) {
    std::printf("one core: nothing runs at the same time, nothing to measure\n");
    return 0;
  }
  std::printf("%u cores\n", allowed_cores());
  double const two = compare<2, 8>(), four = compare<4, 8>(), ns = hand_off();
  std::printf("figure pipeline_2_over_simulated %.3f\n", two);
  std::printf("figure pipeline_4_over_simulated %.3f\n", four);
  std::printf("figure hand_off_ns %.0f\n", ns);
}
