// SPDX-License-Identifier: BSL-1.0
//
// A run that can be ended anywhere and started again: by itself, or in processes of MPI (BY_MPI) or
// of a launcher of sockets (BY_SOCKETS).
//
//     run FOLDER STEPS EVERY sync|async
//
// FOLDER/told has a line after each step: the number of steps, and those of the newest checkpoint
// that is there; and one at each start: "from" and the number of steps it goes on with. The end is
// saved in FOLDER/end.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include <sys/syscall.h>
#include <unistd.h>

#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/io/file_descriptor.hpp>
#include <pipe/metrics/metrics.hpp>

#if defined(BY_SOCKETS) || defined(BY_MPI)
#include "mpi/between.hpp"
#endif
#include "laws/data.hpp"

using namespace pp;

namespace {

struct Net
    : Model<Input<3>, Linear<7>, Tanh, Dropout<1, 5>, Linear<7>, Tanh, LayerNorm, Linear<2>, MSE> {
};
#if defined(BY_SOCKETS) || defined(BY_MPI)
using Place = Between;
int process() { return Between::process(); }
#else
using Place = HostThreads<1>;
int process() { return 0; }
#endif
using Trainer = Pipeline<Net, Stages<4>, MicroBatches<2>, MicroBatchSize<2>, AdamW,
                         Averaging<9, 10>, PortableHost, Place>;

/// A line of FOLDER/told, whole or not at all, in process 0.
void tell(std::string const& folder, std::string const& line) {
  if (process() != 0) return;
  detail::file_descriptor const file(folder + "/told", O_WRONLY | O_CREAT | O_APPEND);
  std::string const text = line + '\n';
  if (!file.write(std::as_bytes(std::span(text.data(), text.size()))))
    detail::throw_file_error("write", folder);
}

void train(std::string const& folder, long last, checkpoints<Trainer>::settings const& settings) {
  std::array const data{laws::sample_batch<Trainer>(1), laws::sample_batch<Trainer>(2),
                        laws::sample_batch<Trainer>(3)};
  std::string const run = folder + "/run";
  Trainer trainer({.seed = 1});
  checkpoints<Trainer> saved(run, settings);
  long const first = saved.resume(trainer).steps;
  tell(folder, "from " + std::to_string(first));
  metrics_log log;
  if (process() == 0) {
    std::string const path = folder + "/metrics.csv";
    log.add(first == 0 ? metrics_file(path) : metrics_file::resumed(path, first));
  }
  while (trainer.steps() < last) {
    auto const& batch = data[std::size_t(trainer.steps()) % data.size()];
    step_result const r = trainer.step(batch.view());
    log.write({.step = trainer.steps(), .loss = r.loss});
    saved.after_step(trainer, trainer.steps(), r.loss);
    if (process() == 0)
      tell(folder,
           std::to_string(trainer.steps()) + " " + std::to_string(newest_checkpoint(run).steps));
  }
  saved.finish(trainer, trainer.steps());
  trainer.save(folder + "/end", trainer.steps());
  tell(folder, "end");
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) return 2;
  process();                 // MPI has started
  ::syscall(SYS_getsid, 0);  // from here on, calls of the system are struck at
  try {
    train(words[1], std::atol(words[2]),
          {.every_steps = std::atol(words[3]),
           .keep_last = 2,
           .asynchronous = std::string_view(words[4]) == "async"});
  } catch (std::exception const& e) {
    std::fprintf(stderr, "process %d: %s\n", process(), e.what());
    return 3;
  }
}
