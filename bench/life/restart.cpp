// SPDX-License-Identifier: BSL-1.0
//
// A run of two processes that saves each step, and says what it does and when, for bench/life.py,
// which kills it.
//
//     life_restart FOLDER         started by pipe-run; prints: event NAME SECONDS
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<256>, Repeat<4, Seq<Linear<256>, Tanh>>, MSE> {};
using Trainer =
    Pipeline<Net, Stages<2>, ByCount, MicroBatches<8>, MicroBatchSize<64>, AdamW, Host, Tcp>;

/// One write, so that lines of two processes do not mix.
void tell(std::string const& what) {
  auto const now = std::chrono::system_clock::now().time_since_epoch();
  char line[128];
  int const length = std::snprintf(line, sizeof line, "event %s %.6f %d\n", what.c_str(),
                                   std::chrono::duration<double>(now).count(), int(getpid()));
  if (write(STDOUT_FILENO, line, std::size_t(length)) != length) _exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("life_restart FOLDER\n", stderr), 2;
  tell("started");
  Trainer trainer;
  tell("met");
  checkpoints<Trainer> saved(arguments[1], {.every_steps = 1});
  saved.resume(trainer);
  tell("loaded");
  std::vector<float> const inputs(std::size_t(Trainer::samples * Trainer::inputs_per_sample), 0.5f),
      labels(std::size_t(Trainer::samples * Trainer::labels_per_sample), 0.25f);
  for (int i = 0; i < 100000; ++i) {
    trainer.step({inputs, labels});
    saved.after_step(trainer, trainer.steps());
    if (i < 10) tell("step");
  }
}
