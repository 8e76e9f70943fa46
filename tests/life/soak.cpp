// SPDX-License-Identifier: BSL-1.0
//
// Long runs with all that watches and saves them: after a warm-up nothing grows, and between calls
// no thread is woken.
#include "catch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include <malloc.h>

#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/metrics/metrics.hpp>
#include <pipe/metrics/tensorboard.hpp>
#include <pipe/report/json_lines.hpp>
#include <pipe/report/live_page.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/train/step_guard.hpp>
#include <pipe/train/stop_request.hpp>

#include "laws/data.hpp"
#include "runtime/switches.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<3>, Linear<7>, Tanh, Dropout<1, 5>, LayerNorm, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, MicroBatchSize<2>, AdamW,
                         Averaging<9, 10>, PortableHost, HostThreads<2>>;

constexpr long warm_up = 5'000, last = 20'000, every = 100;

long entries(std::string const& folder) {
  long count = 0;
  for ([[maybe_unused]] auto const& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}
/// The threads of this process. A thread that has been joined is listed until the system has
/// released it, so the fewest of several readings count.
long threads_of_process() {
  long fewest = entries("/proc/self/task");
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    fewest = std::min(fewest, entries("/proc/self/task"));
  }
  return fewest;
}
/// The resources that this process uses.
struct amounts {
  long threads = threads_of_process(), descriptors = entries("/proc/self/fd");
  long heap = long(mallinfo2().uordblks), resident = detail::resident_bytes();
};

}  // namespace

// Its ranks have teams of threads, which sleep too.
TEST_CASE("a run of 20,000 steps takes no more than it had after its warm-up") {
  temporary_folder const folder;
  std::string const run = folder.file("run");
  std::array const data{laws::sample_batch<Trainer>(1), laws::sample_batch<Trainer>(2)};
  auto const others = switches();
  std::FILE* const terminal = std::fopen("/dev/null", "w");
  REQUIRE(terminal != nullptr);
  {
    stop_request stop;
    Trainer trainer({.seed = 1});
    checkpoints<Trainer> saved(run, {.every_steps = every, .keep_last = 3, .keep_best = 2});
    saved.resume(trainer);
    live_page page({.steps = last, .serve = page_address{}});
    progress_line line(last, console::step_words, terminal);
    metrics_log log;
    log.add(metrics_file(folder.file("metrics.csv")));
    log.add(json_lines_file(folder.file("metrics.jsonl")));
    log.add(tensorboard_file(folder.file("tensorboard")));
    log.add(page);
    step_guard guard;
    amounts before;
    while (trainer.steps() < last && !stop.is_requested(trainer)) {
      auto const& batch = data[std::size_t(trainer.steps()) % data.size()];
      guard.step(trainer.steps(), [&] { return trainer.step(batch.view()); });
      step_result const& r = guard.last();
      double loss = r.loss;
      if (trainer.steps() % every == 0) loss = trainer.evaluate(data[0].view());
      step_metrics const m{.step = trainer.steps(), .loss = r.loss, .seconds = r.seconds};
      log.write(m);
      line.write(m);
      saved.after_step(trainer, trainer.steps(), loss);
      if (trainer.steps() != warm_up) continue;
      saved.finish(trainer, trainer.steps());  // no thread is writing
      before = amounts();
    }
    saved.finish(trainer, trainer.steps());
    amounts const after;
    CHECK(trainer.steps() == last);
    CHECK(after.threads == before.threads);
    CHECK(after.descriptors == before.descriptors);
    // Less than one allocation for each checkpoint; a page for each would be seen as well.
    CHECK(after.heap - before.heap < 24 * (last - warm_up) / every);
    CHECK(after.resident - before.resident < 4096 * (last - warm_up) / every);
    CHECK(entries(run) <= 3 + 2 + 2);  // checkpoints, `latest` and `lock`

    bool sleep = false;
    for (int i = 0; i < 20 && !sleep; ++i) {
      auto const at_first = switches();
      std::this_thread::sleep_for(std::chrono::seconds(1));
      sleep = true;
      for (auto const& [thread, number] : switches())
        if (!others.contains(thread)) sleep &= at_first.at(thread) == number;
    }
    CHECK(sleep);
  }
  std::fclose(terminal);
}
