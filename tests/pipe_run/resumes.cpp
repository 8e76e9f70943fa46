// SPDX-License-Identifier: BSL-1.0
//
// A run over processes that goes on at its checkpoint when it is started again, and the ways in
// which one of them is lost: those of the words of PIPE_TEST_LOSS, "WAY PROCESS STEP STARTS", until
// the program has been started STARTS times.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>
#include <pipe/train/batches.hpp>

using namespace pp;

struct Net : Model<Input<2>, Linear<8>, Tanh, Linear<8>, Tanh, Linear<1>, MSE> {};
#ifdef REPLICAS
using Trainer = Pipeline<Net, MicroBatches<2>, MicroBatchSize<2>, AdamW, Tcp>;
#else
using Trainer = Pipeline<Net, Stages<4>, MicroBatches<2>, MicroBatchSize<2>, AdamW, Tcp>;
#endif

namespace {

constexpr int samples = 42;

struct loss {
  std::string way;
  int process = -1, step = 0, starts = 0;

  static loss of_test() {
    loss l;
    if (char const* const words = std::getenv("PIPE_TEST_LOSS"))
      std::istringstream(words) >> l.way >> l.process >> l.step >> l.starts;
    char const* const restart = std::getenv("PIPE_RESTART");
    if (restart != nullptr && std::atoi(restart) >= l.starts) l.process = -1;
    return l;
  }
  /// This process is lost after a step.
  void strike(long done) const {
    if (Tcp::process() != process || done != step) return;
    if (way == "killed") raise(SIGKILL);
    if (way == "stopped") raise(SIGSTOP);
    if (way == "exits") std::exit(5);
    if (way == "leaves") std::exit(0);
    if (way == "throws") throw std::runtime_error("broken");
    if (way == "hangs")
      for (;;) pause();
  }
};

std::sig_atomic_t volatile is_asked_to_end = 0;
struct asked_to_end {};

/// A trainer that notes the samples of its steps, and may be lost before one.
struct observed : Trainer {
  loss const end = loss::of_test();
  std::string folder;

  explicit observed(std::string const& of) : Trainer({.seed = 1}), folder(of) {
    if (Tcp::process() == 0)
      std::ofstream(folder + "/starts", std::ios::app) << Tcp::processes() << '\n';
  }
  void step(batch const& b) {
    end.strike(steps());
    if (is_asked_to_end) throw asked_to_end{};
    Trainer::step(b);
    if (Tcp::process() != 0) return;
    std::ofstream log(folder + "/steps", std::ios::app);
    log << steps() << ' ' << Tcp::processes();
    for (std::size_t i = 0; i < b.labels.size(); ++i)
      log << ' ' << b.inputs[2 * i] << ',' << b.inputs[2 * i + 1];
    log << '\n';
  }
};

void train(std::string const& folder, long last) {
  std::string const path = folder + "/run.safetensors";
  std::vector<float> x, y;
  for (int i = 0; i < samples; ++i) {
    x.insert(x.end(), {float(i % 6) / 3 - 1, float(i / 6) / 3 - 1});
    y.push_back(x[2 * std::size_t(i)] * x[2 * std::size_t(i) + 1]);
  }
  typename Trainer::batch const data{x, y};
  observed trainer(folder);

  // [resume]
  long done = 0;  // samples, over all epochs
  if (std::filesystem::exists(path)) done = trainer.load(path).position.number();
  while (done < last) {
    batches<Trainer> epoch(
        data,
        {.shuffle = true, .seed = 1, .samples = trainer.batch_samples(), .sample_position = done});
    for (auto const& batch : epoch) {
      trainer.step(batch);
      done = epoch.sample_position();
      if (trainer.steps() % 2 == 0) trainer.save(path, done);
      if (done >= last) break;
    }
  }
  // [/resume]
  trainer.save(folder + "/end.safetensors", done);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  if (std::getenv("PIPE_TEST_NOTES_SIGNALS") != nullptr)
    std::signal(SIGTERM, [](int) { is_asked_to_end = 1; });
  try {
    train(words[1], std::atol(words[2]));
  } catch (asked_to_end) {
    std::ofstream(std::string(words[1]) + "/asked") << "ends\n";
  } catch (std::exception const& e) {
    std::fprintf(stderr, "process %d: %s\n", Tcp::process(), e.what());
    return 3;
  }
}
