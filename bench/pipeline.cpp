// SPDX-License-Identifier: BSL-1.0
//
// How long a pipelined step takes against what the simulator says, under every schedule, and how
// long a hand-off between two ranks takes.
//
// The simulator is fed with the stages' times, medians of what they take one after the other on one
// rank. The step is timed from its first action to its last; all take turns. On fewer cores than
// ranks no schedule can be faster than all work over all cores, and that is taken instead where it
// is longer.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>
#include <tuple>
#include <vector>

#include <pipe/pipe.hpp>

#include "peer/turns.hpp"

using namespace pp;
using namespace pp::detail;
using bench::median;

namespace {

/// Equal layers; one of width 1024 takes about a millisecond forward.
template <int Layers, int Width>
struct Even : Model<Input<Width>, Repeat<Layers, Seq<Linear<Width>, Tanh>>, MSE> {};

/// All stages in turn on one rank.
template <int Chunks, bool Splits>
struct InTurn {
  static constexpr char const* name = "in turn";
  static constexpr schedules::placement where = schedules::placement::loop;
  static constexpr int chunks_per_rank = Chunks;
  static constexpr bool trains = true, splits_backward = Splits;
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum schedules::action_kind;
    for (int mb = 0; mb < problem.micro_batches; ++mb) {
      for (int c = 0; c < Chunks; ++c) table.push(0, {forward, c, mb});
      for (int c = Chunks - 1; c >= 0; --c) {
        table.push(0, {Splits ? backward_input : backward, c, mb});
        if (Splits) table.push(0, {backward_weight, c, mb});
      }
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

constexpr int micro_batches = 8;
template <class Model, int StageCount, class Schedule>
using Trainer = Pipeline<Model, Stages<StageCount>, ByCount, MicroBatches<micro_batches>,
                         MicroBatchSize<96>, Schedule>;

/// Measured over simulated, for schedules that all have B and W apart, or none.
template <class Model, int StageCount, class... Schedules>
std::array<double, sizeof...(Schedules)> compare(int rounds) {
  constexpr bool splits = (Schedules::splits_backward && ...);
  static_assert(splits || !(Schedules::splits_backward || ...));
  using serial = Trainer<Model, StageCount, InTurn<StageCount, splits>>;
  serial in_turn({.runtime = {.pin = true}});
  std::tuple<Trainer<Model, StageCount, Schedules>...> pipelined(
      Trainer<Model, StageCount, Schedules>({.runtime = {.pin = true}})...);
  std::vector<float> const x(std::size_t(serial::samples * serial::inputs_per_sample), 0.1f);

  std::array<std::vector<double>, action_kinds> times[StageCount];
  std::array<std::vector<double>, sizeof...(Schedules)> steps;
  auto const for_each_trainer = [&](auto use) {
    std::size_t i = 0;
    std::apply([&](auto&... t) { (use(t, i++), ...); }, pipelined);
  };
  for (int round = -3; round < rounds; ++round) {
    in_turn.step({x, x});
    if (round >= 0)
      for (executed_action const& a : in_turn.executed(0))
        times[a.what.chunk][std::size_t(a.what.kind)].push_back(double(a.end - a.start));
    for_each_trainer([&](auto& t, std::size_t i) {
      t.step({x, x});
      if (round >= 0) steps[i].push_back(makespan(t));
    });
  }

  schedules::chunk_cost cost[StageCount];
  double work = 0;
  std::printf("%d stages, %d micro-batches, %d rounds in turns; medians in microseconds\n",
              StageCount, micro_batches, rounds);
  for (int s = 0; s < StageCount; ++s) {
    auto const time = [&](schedules::action_kind kind) {
      auto const& all = times[s][std::size_t(kind)];
      return all.empty() ? 0 : median(all);
    };
    using enum schedules::action_kind;
    double const f = time(forward), b = time(splits ? backward_input : backward),
                 w = time(backward_weight);
    std::printf("  stage %d: forward %.0f, backward %.0f", s, f / 1e3, b / 1e3);
    if (splits) std::printf(" + %.0f", w / 1e3);
    std::printf("\n");
    cost[s] = schedules::chunk_cost{long(f), long(b), long(w)};
    work += (f + b + w) * micro_batches;
  }
  std::array<double, sizeof...(Schedules)> ratios{};
  for_each_trainer([&]<class T>(T&, std::size_t i) {
    constexpr int ranks = T::plan.rank_count;
    auto const problem = schedules::unequal_times(ranks, micro_batches, cost);
    double const by_cores = work / std::min(ranks, int(allowed_cores()));
    double const simulated = double(schedules::simulate(problem, T::compiled::table()).makespan);
    double const measured = median(steps[i]);
    ratios[i] = measured / std::max(simulated, by_cores);
    std::printf(
        "  %-20s %d rank%s simulated %6.0f, all work over all cores %6.0f, measured %6.0f: %.3f\n",
        T::plan.schedule, ranks, ranks == 1 ? ", " : "s,", simulated / 1e3, by_cores / 1e3,
        measured / 1e3, ratios[i]);
  });
  std::fflush(stdout);
  return ratios;
}

/// Every schedule that a pipeline runs. Where a rank has two chunks, two stages are on one rank.
template <int StageCount>
void compare_families() {
  using model = Even<4, 512>;
  constexpr int rounds = 15;
  compare<model, StageCount, GPipe, OneFOneB, EagerOneFOneB, Interleaved<2>, GroupedInterleaved<2>,
          LoopedBFS<2>, Hanayo<>>(rounds);
  compare<model, StageCount, ZeroBubbleH1, ZeroBubbleH2, ZeroBubbleV, VHalf, VMin, DualPipeV>(
      rounds);
}

/// Nanoseconds from a publication on one core to its reader on another: half a round trip, both
/// spinning.
double hand_off() {
  constexpr int trips = 2000, runs = 101;
  in_process board(1, 2, transports::patience{});
  transports::failure_flag never{false};
  std::vector<double> each;
  for (int run = 0; run < runs; ++run) {
    board.reset();
    std::thread other([&] {
      pin_this_thread(1);
      for (int i = 0; i < trips; ++i) {
        board.wait(0, transports::milestone::forward, i, never);
        board.publish(1, transports::milestone::forward, i);
      }
    });
    std::thread one([&] {
      pin_this_thread(0);
      board.publish(0, transports::milestone::forward, 0);
      board.wait(1, transports::milestone::forward, 0, never);  // the other one is awake
      auto const start = std::chrono::steady_clock::now();
      for (int i = 1; i < trips; ++i) {
        board.publish(0, transports::milestone::forward, i);
        board.wait(1, transports::milestone::forward, i, never);
      }
      std::chrono::duration<double, std::nano> const took =
          std::chrono::steady_clock::now() - start;
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
  constexpr int rounds = 60;
  double const two = compare<Even<2, 1024>, 2, OneFOneB>(rounds)[0],
               four = compare<Even<4, 1024>, 4, OneFOneB>(rounds)[0], ns = hand_off();
  compare_families<2>();
  compare_families<4>();
  std::printf("figure pipeline_2_over_simulated %.3f\n", two);
  std::printf("figure pipeline_4_over_simulated %.3f\n", four);
  std::printf("figure hand_off_ns %.0f\n", ns);
}
