// SPDX-License-Identifier: BSL-1.0
//
// A user-defined schedule: ten lines, proved by the compiler, drawn, compared with the library's
// and run.
#include <cstdio>

#include <pipe/pipe.hpp>
#include <pipe/report/timeline.hpp>
#include <pipe/schedule.hpp>

// 1F1B that keeps one more micro-batch in flight on every rank: hops are hidden, for little memory.
// [my_schedule]
struct OneMore {
  static constexpr char const* name = "one-more";
  static constexpr pp::schedules::placement where =
      pp::schedules::placement::straight;  // chunk c on rank c
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false, trains = true;

  static constexpr void fill(auto const& problem, auto& table) {
    for (int rank = 0, m = problem.micro_batches; rank < problem.ranks; ++rank)
      for (int tick = 0, ahead = problem.ranks - rank; tick < m + ahead; ++tick) {
        if (tick < m) table.push(rank, {pp::schedules::action_kind::forward, rank, tick});
        if (tick >= ahead)
          table.push(rank, {pp::schedules::action_kind::backward, rank, tick - ahead});
      }
  }
};
// [/my_schedule]

// The compiler checks it: complete, ordered, free of deadlock. Times are in any unit; a hop takes 2
// of them.
//
// [proof]
namespace paper {
constexpr auto problem =
    pp::schedules::equal_times(4, 8, {.forward = 3, .backward_input = 3, .backward_weight = 3}, 2);
constexpr auto table = pp::schedules::make_table<OneMore, 4, 8>(problem);
static_assert(pp::schedules::validate(problem, table).ok());
constexpr auto when = pp::schedules::simulate(problem, table);
static_assert(when.makespan <
              pp::schedules::simulate(problem,
                                      pp::schedules::make_table<pp::OneFOneB, 4, 8>(problem))
                  .makespan);
static_assert(pp::schedules::peak_in_flight(table, 0) == 5);
}  // namespace paper
// [/proof]

// And it trains: a pipeline takes it like any other.
struct Mlp : pp::Model<pp::Input<16>, pp::Repeat<4, pp::Linear<32>, pp::GELUTanh>, pp::Linear<4>,
                       pp::MSE> {};
using Trainer = pp::Pipeline<Mlp, pp::Stages<4>, pp::MicroBatches<8>, pp::MicroBatchSize<4>,
                             OneMore, pp::AdamW>;

int main() {
  std::printf(
      "%s, as the compiler has simulated it: %ld units of time, a bubble of %.1f %%\n\n%s\n",
      OneMore::name, paper::when.makespan, 100 * paper::when.bubble_by_makespan(),
      pp::draw(paper::table, paper::when).c_str());
  Trainer trainer;
  std::vector<float> inputs(Trainer::samples * Trainer::inputs_per_sample, 0.5f);
  std::vector<float> labels(Trainer::samples * Trainer::labels_per_sample, 1.0f);
  double const first = trainer.step({inputs, labels}).loss;
  double last = first;
  for (int step = 0; step < 50; ++step) last = trainer.step({inputs, labels}).loss;
  std::printf("and trained with it: loss %.4f, after 50 steps %.4f; the last step as it ran:\n\n%s",
              first, last, pp::draw(pp::gather_executed(trainer)).c_str());
  return last < first ? 0 : 1;
}
