// SPDX-License-Identifier: BSL-1.0
//
// A process of a job of two replicas, in several builds: arithmetic CASE [STEPS]. It says what its
// kernels are, and what three steps have computed. test_arithmetic.py starts processes of builds
// that compute alike, or not, and reads what they say.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <pipe/loose/delayed_replica.hpp>
#include <pipe/pipe.hpp>
#include <pipe/weights/parameter_hash.hpp>

#include "laws/data.hpp"
#include "mpi/between.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<70>, Tanh, Linear<4>, CrossEntropy> {};
template <class Precision>
using Alone = Pipeline<Net, Precision, AdamW, MicroBatches<2>, MicroBatchSize<20>>;
template <class Precision>
using Replica = Pipeline<Net, Precision, AdamW, MicroBatches<2>, MicroBatchSize<20>,
                         GradientAccumulation<2>, Between>;

void say(char const* what) {
  std::printf("process %d: %s\n", Between::process(), what);
  std::fflush(stdout);
}
template <class Precision>
void train() {
  using Trainer = Replica<Precision>;
  Trainer trainer({.seed = 3, .compare_replicas = 1});
  say(trainer.runs_on().c_str());
  laws::sample_batch<Trainer> const data(1);
  step_result r;
  for (int step = 0; step < 3; ++step) r = trainer.step(data.view());
  char line[80];
  std::snprintf(line, sizeof line, "%016llx %016llx",
                static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(r.loss)),
                static_cast<unsigned long long>(parameter_hash(trainer)));
  say(line);
}
template <class Precision>
void delay() {
  Alone<Precision> trainer({.seed = 3});
  delayed_replica<Alone<Precision>, Between> const replica(trainer);
  say("has begun");
}

}  // namespace

int main(int count, char** arguments) {
  std::string_view const name = count > 1 ? arguments[1] : "train";
  try {
    if (name == "delay")
      delay<FP32>();
    else if (name == "delay_bf16")
      delay<BF16>();
    else if (name == "bf16")
      train<BF16>();
    else
      train<FP32>();
  } catch (error const& e) {
    say(e.what());
    return 1;
  }
  return 0;
}
