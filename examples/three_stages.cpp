// SPDX-License-Identifier: BSL-1.0
//
// The smallest pipeline that overlaps steps: a network 10-50-20-2 in three stages, micro-batches of
// 4 in a mini-batch of 8, under PipeDream. What is honest about it: two micro-batches fill three
// stages badly while a run begins and ends, and a long run is as fast as its slowest stage allows.
#include <cstdio>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/report/explain.hpp>
using namespace pp;

// [three_stages]
struct Small : Model<Input<10>, Linear<50>, ReLU, Linear<20>, ReLU, Linear<2>, CrossEntropy> {};
using Trainer = Pipeline<Small, Stages<3>, MicroBatches<2>, MicroBatchSize<4>, PipeDream<>>;

static_assert(Trainer::samples == 8 && Trainer::plan.parameters == 550 + 1020 + 42);
static_assert(Trainer::plan.bubble > 0.54 && Trainer::plan.bubble < 0.56);  // of one mini-batch
static_assert(Trainer::plan.stages[0].in_flight == 3 && Trainer::plan.stages[2].in_flight == 1);
// [/three_stages]

int main() {
  std::printf("%s", explain<Trainer>().c_str());
  std::vector<float> inputs(Trainer::samples * 10);
  std::vector<int> labels(Trainer::samples);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = float(i * 37 % 101) / 50 - 1;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = int(i * i % 3 == 1);

  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0.1}});
  std::vector<Trainer::batch> const steps(400, Trainer::batch{inputs, labels});
  double first = 0, last = 0;
  trainer.train(steps,
                [&](step_result const& r) { last = r.loss, first = first == 0 ? last : first; });
  std::printf(
      "\n%ld steps of %d samples: loss %.4f, then %.4f\n"
      "bubble of one mini-batch alone %.0f %%, of a long run %.0f %%\n",
      trainer.steps(), Trainer::samples, first, last, 100 * Trainer::plan.bubble,
      100 * Trainer::plan.bubble_steady);
  return last < first ? 0 : 1;
}
