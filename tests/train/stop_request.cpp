// SPDX-License-Identifier: BSL-1.0
//
// Signals of a training program: the first asks it to stop, the second ends it at once.
#include "catch.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <tuple>

#include <sys/wait.h>
#include <unistd.h>

#include <pipe/checkpoint/checkpoints.hpp>
#include <pipe/train/stop_request.hpp>

#include "laws/data.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

struct Small : Model<Input<3>, Linear<2>, MSE> {};
using Trainer = Pipeline<Small, PortableHost>;

/// The action that a signal has now.
void (*handler(int signal))(int) {
  struct sigaction now{};
  sigaction(signal, nullptr, &now);
  return now.sa_handler;
}
/// How a child process ends in which work() runs.
template <class Work>
int status_of(Work work) {
  pid_t const child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

/// A program that trains, as documented. batch_of: of a step
template <class BatchOf>
int train(std::string const& folder, long last, BatchOf const& batch_of) {
  // [stop]
  stop_request stop;
  Trainer trainer({.seed = 1});
  checkpoints<Trainer> saved(folder,
                             {.every = std::chrono::minutes(10), .keep_last = 3, .keep_best = 1});
  saved.resume(trainer);
  while (trainer.steps() < last && !stop.is_requested(trainer)) {
    double const loss = trainer.step(batch_of(trainer.steps())).loss;
    saved.after_step(trainer, trainer.steps(), loss);
  }
  saved.finish(trainer, trainer.steps());
  return stop.exit_code();  // 0, or 130 after SIGINT, 143 after SIGTERM
  // [/stop]
}

}  // namespace

TEST_CASE(
    "a program that is asked to stop ends its step, saves and goes on when it is started again") {
  std::signal(SIGTERM, SIG_DFL);
  temporary_folder const folder;
  laws::sample_batch<Trainer> const data(1);
  auto const batch_of = [&](bool stops) {
    return [&, stops](long step) {
      if (stops && step == 3) std::raise(SIGTERM);
      return data.view();
    };
  };
  CHECK(train(folder.file("a"), 6, batch_of(true)) == 143);
  CHECK(newest_checkpoint(folder.file("a")).steps == 4);
  CHECK(train(folder.file("a"), 6, batch_of(false)) == 0);
  CHECK(train(folder.file("b"), 6, batch_of(false)) == 0);
  CHECK(same_content(folder.file("a/step-6.safetensors"), folder.file("b/step-6.safetensors")));
}
TEST_CASE("the first signal is a request, with its code") {
  for (auto const& [signal, name, code] :
       {std::tuple(SIGINT, "SIGINT", 130), std::tuple(SIGTERM, "SIGTERM", 143)}) {
    // A shell's background jobs are started to ignore SIGINT.
    std::signal(SIGINT, SIG_DFL), std::signal(SIGTERM, SIG_DFL);
    auto const before = handler(signal);
    {
      Trainer trainer;
      stop_request stop;
      CHECK_FALSE(stop);
      CHECK_FALSE(stop.is_requested(trainer));
      CHECK(stop.exit_code() == 0);
      CHECK(stop.name() == std::string());
      std::raise(signal);
      trainer.step(laws::sample_batch<Trainer>(1).view());
      CHECK(stop);
      CHECK(stop.is_requested(trainer));
      CHECK(stop.exit_code() == code);
      CHECK(stop.name() == std::string(name));
      CHECK(handler(SIGINT) == SIG_DFL);
      CHECK(handler(SIGTERM) == SIG_DFL);
    }
    CHECK(handler(signal) == before);
    CHECK_FALSE(stop_request());
  }
}
TEST_CASE("the second signal ends the program at once") {
  for (int const first : {SIGINT, SIGTERM})
    for (int const second : {SIGINT, SIGTERM}) {
      int const status = status_of([&] {
        std::signal(first, SIG_DFL);
        std::signal(second, SIG_DFL);
        stop_request const stop;
        std::raise(first);
        std::raise(second);
      });
      REQUIRE(WIFSIGNALED(status));
      CHECK(WTERMSIG(status) == second);
    }
}
TEST_CASE("what concerns the output does not end a program") {
  for (int const signal : {SIGHUP, SIGPIPE, SIGXFSZ}) {
    int const status = status_of([&] {
      std::signal(signal, SIG_DFL);
      stop_request const stop;
      std::raise(signal);
      std::raise(signal);
      _exit(stop ? 1 : stop.has_lost_terminal() == (signal == SIGHUP) ? 0 : 2);
    });
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
}
TEST_CASE("what a program was started to ignore stays ignored") {
  for (int const signal : {SIGINT, SIGTERM, SIGHUP}) {
    auto const before = std::signal(signal, SIG_IGN);
    {
      stop_request const stop;
      std::raise(signal);
      CHECK_FALSE(stop);
      CHECK_FALSE(stop.has_lost_terminal());
    }
    CHECK(handler(signal) == SIG_IGN);
    std::signal(signal, before);
  }
}
