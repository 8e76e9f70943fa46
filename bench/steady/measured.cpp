// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap against steps with a barrier: two equal stages of about a millisecond on two
// cores, in turns. Prints: figure NAME VALUE
//
// steady_over_barrier_2      time of a step with a barrier over one without
// ..._planned                the same of the plan: makespan over period
// pipedream_step_over_1f1b   a step without a flush over one with it, each of 4 micro-batches
// ..._planned                the same of the plan
#include <chrono>
#include <cstdio>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/schedule/families.hpp>

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

}  // namespace

int main() {
  // Of many micro-batches a barrier is a small part: few, so that it is seen.
  using barrier = Two<4, ZeroBubbleH2>;
  using steady = Two<4, Steady<ZeroBubbleH2>>;
  double const planned =
      double(barrier::compiled::timeline().makespan) / steady::plan().period.value();
  double const measured = ratio<barrier, steady>("steady_over_barrier_2", 40, 40);
  std::printf("figure steady_over_barrier_2_planned %.4f\n", planned);
  std::printf("figure steady_over_barrier_2_measured_over_planned %.4f\n", measured / planned);

  using flushed = Two<4, OneFOneB>;
  using dream = Two<4, PipeDream<>>;
  double const planned_dream =
      dream::plan().period.value() / double(flushed::compiled::timeline().makespan);
  double const measured_dream = ratio<dream, flushed>("pipedream_step_over_1f1b", 40, 40);
  std::printf("figure pipedream_step_over_1f1b_planned %.4f\n", planned_dream);
  std::printf("figure pipedream_step_over_1f1b_measured_over_planned %.4f\n",
              measured_dream / planned_dream);
}
