// SPDX-License-Identifier: BSL-1.0
//
// A trainer that is called at the wrong moment says so in one sentence and is as before; no call
// hangs. And it moves.
#include "catch.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>

#include "message_of.hpp"
#include "runtime/allocation.hpp"
#include "runtime/trainers.hpp"

using namespace pp;
using Catch::Contains;

namespace {

using Trainer = tiny::Regression;
laws::sample_batch<Trainer> const data(1);
Trainer::batch batch() { return data.view(); }

/// The next two steps of a trainer that has done nothing yet.
void trains_like_a_new_one(Trainer& t) {
  Trainer fresh;
  for (int i = 0; i < 2; ++i)
    CHECK(laws::same_bits(t.step(batch()).loss, fresh.step(batch()).loss));
  CHECK(laws::same_numbers(laws::snapshot(t).values, laws::snapshot(fresh).values));
  CHECK(t.steps() == 2);
}

/// Calls every member that works with the machine; returns how many threw an error that says so.
int refusals(Trainer& t, char const* why) {
  std::vector<float> outputs(std::size_t(Trainer::samples * Trainer::outputs_per_sample));
  auto const refused = [&](auto call) {
    try {
      call();
    } catch (error const& e) {
      return std::string(e.what()).find(why) != std::string::npos ? 1 : 0;
    }
    return 0;
  };
  return refused([&] { t.step(batch()); }) + refused([&] { t.step(batch(), 0.1); }) +
         refused([&] { t.accumulate(batch()); }) + refused([&] { t.gradients(batch()); }) +
         refused([&] { t.watch(batch(), [](launch_seen const&) {}); }) +
         refused([&] { t.evaluate(batch()); }) + refused([&] { t.forward(data.inputs, outputs); }) +
         refused([&] { t.parameters(); }) + refused([&] { t.parameters_changed(); }) +
         refused([&] { t.executed(0); });
}
constexpr int members = 10;

/// Runs test() in a process of its own, which may leave threads behind; true if it returned true
/// within a minute.
template <class Test>
bool in_a_child(Test const& test) {
  pid_t const child = fork();
  if (child == 0) {
    alarm(60);
    _exit(test() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("calls from a callback are refused", "[runtime]") {
  Trainer t;
  std::atomic<int> refused{0}, calls{0};
  t.watch(batch(), [&](launch_seen const&) {
    ++calls;
    refused += refusals(t, "a run is in progress");
    if (t.steps() != 0 || t.accumulated() != 0) refused = -1000000;
  });
  CHECK(calls > 0);
  CHECK(refused == calls * members);
  trains_like_a_new_one(t);
}

TEST_CASE("a rank or a layer that does not exist is refused", "[runtime]") {
  Trainer t;
  t.step(batch());
  for (int const none :
       {-1, 3, 1000, 1000000, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    std::string const rank = "rank " + std::to_string(none) + " is not in [0, 3)";
    CHECK(message_of([&] { t.executed(none); }) == rank);
    CHECK(message_of([&] { t.allocated_bytes(none); }) == rank);
    CHECK(message_of([&] { Trainer::plan.memory_of(none); }) == rank);
  }
  for (int const none : {-1, 4, 1000000})
    CHECK(message_of([&] { Trainer::layer_name(none); }) ==
          "layer " + std::to_string(none) + " is not in [0, 4)");
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(t.executed(rank).size() == 8);
    CHECK(t.allocated_bytes(rank) == Trainer::plan.rank_bytes[rank]);
  }
  CHECK(Trainer::layer_name(3) == "Linear<2>");
}

TEST_CASE("calls from the learning-rate function are refused", "[runtime]") {
  Trainer* self = nullptr;
  int refused = 0;
  Trainer t({.learning_rate_factor = [&](long) {
    refused += refusals(*self, "a run is in progress");
    return 1.0;
  }});
  self = &t;
  trains_like_a_new_one(t);
  CHECK(refused == 2 * members);
}

TEST_CASE("a second thread is refused while the first is in a run", "[runtime]") {
  Trainer t;
  std::atomic<bool> began{false}, may_end{false};
  std::thread first([&] {
    t.watch(batch(), [&](launch_seen const&) {
      began = true;
      while (!may_end) std::this_thread::yield();
    });
  });
  while (!began) std::this_thread::yield();
  CHECK(refusals(t, "a run is in progress") == members);
  may_end = true;
  first.join();
  trains_like_a_new_one(t);
}

TEST_CASE("what a callback throws comes out, and nothing has changed", "[runtime]") {
  Trainer t;
  CHECK_THROWS_WITH(
      t.watch(batch(), [](launch_seen const&) { throw std::logic_error("seen enough"); }),
      "seen enough");
  CHECK_THROWS_AS(t.watch(batch(), [](launch_seen const&) { throw 7; }), int);
  trains_like_a_new_one(t);
}

TEST_CASE("a child of fork() is refused and can end", "[runtime]") {
  auto t = std::make_unique<Trainer>();
  CHECK(in_a_child([&] {
    bool const all = refusals(*t, "construct another one after fork()") == members;
    t.reset();  // joins no threads: they are the parent's
    return all;
  }));
  trains_like_a_new_one(*t);
}

TEST_CASE("the reference's settings of a run that stands still", "[runtime]") {
  // [timeout]
  Trainer::settings settings;
  settings.runtime.waiting.deadline = std::chrono::minutes(10);
  settings.runtime.on_timeout = pp::abort_with_report;
  settings.runtime.slow = {.factor = 5, .at_least = std::chrono::minutes(1)};
  Trainer trainer(settings);
  // [/timeout]
  trains_like_a_new_one(trainer);
}

TEST_CASE("the destructor waits for a run of another thread", "[runtime]") {
  CHECK(in_a_child([] {
    std::optional<Trainer> t(std::in_place);
    Trainer& same = *t;
    std::atomic<bool> began{false}, ended{false};
    std::thread other([&] {
      same.watch(batch(), [&](launch_seen const&) {
        if (began.exchange(true)) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        ended = true;
      });
    });
    while (!began) std::this_thread::yield();
    t.reset();
    bool const waited = ended;
    other.join();
    return waited;
  }));
}

TEST_CASE("a program exits while another thread trains", "[runtime]") {
  for (int i = 0; i < 3; ++i)
    CHECK(in_a_child([] {
      std::atomic<int> steps{0};
      std::thread([&] {
        static Trainer t;
        for (;; ++steps) t.watch(batch(), [](launch_seen const&) { usleep(100); });
      }).detach();
      while (steps < 5) std::this_thread::yield();
      std::exit(0);
      return false;
    }));
}

TEST_CASE("a trainer that is destroyed by its own callback finishes its run", "[runtime]") {
  CHECK(in_a_child([] {
    auto t = std::make_unique<Trainer>();
    Trainer& same = *t;
    std::atomic<bool> first{true};
    double const loss = same.watch(batch(),
                                   [&](launch_seen const&) {
                                     if (first.exchange(false)) t.reset();
                                   })
                            .loss;
    return laws::same_bits(loss, Trainer().gradients(batch()).loss);
  }));
}

TEST_CASE("a trainer that was moved from calls no learning-rate function", "[runtime]") {
  Trainer from(
      {.learning_rate_factor = [factor = std::vector<double>{0.5}](long) { return factor.at(0); }});
  double const rate = from.learning_rate();
  Trainer const to = std::move(from);
  CHECK(to.learning_rate() == rate);
  CHECK_THROWS_WITH(from.learning_rate(),
                    "this trainer was moved from: use the one that it was moved to");
}

TEST_CASE("a trainer moves, with what it has learned", "[runtime]") {
  STATIC_REQUIRE((std::is_nothrow_move_constructible_v<Trainer> &&
                  std::is_nothrow_move_assignable_v<Trainer>));
  STATIC_REQUIRE_FALSE(
      (std::is_copy_constructible_v<Trainer> || std::is_copy_assignable_v<Trainer>));
  Trainer stays;
  std::vector<Trainer> all;
  for (int i = 0; i < 3; ++i) all.emplace_back();
  auto const views = all[1].parameters();
  auto const both = [&](Trainer& moved) {
    CHECK(laws::same_bits(stays.step(batch()).loss, moved.step(batch()).loss));
    CHECK(laws::same_numbers(laws::snapshot(stays).values, laws::snapshot(moved).values));
    CHECK(moved.steps() == stays.steps());
  };
  both(all[1]);
  stays.accumulate(batch());
  all[1].accumulate(batch());
  all.erase(all.begin());
  all.shrink_to_fit();
  both(all[0]);
  CHECK(views[0].values.data() == all[0].parameters()[0].values.data());

  Trainer taken = std::move(all[0]);
  both(taken);
  CHECK(refusals(all[0], "this trainer was moved from: use the one that it was moved to") ==
        members);
  CHECK_THROWS_WITH(all[0].allocated_bytes(0),
                    "this trainer was moved from: use the one that it was moved to");
  CHECK_THROWS_WITH(all[0].steps(),
                    "this trainer was moved from: use the one that it was moved to");
  CHECK_THROWS_WITH(all[0].accumulated(),
                    "this trainer was moved from: use the one that it was moved to");
  CHECK_THROWS_WITH(all[0].learning_rate(),
                    "this trainer was moved from: use the one that it was moved to");
  all[0] = std::move(taken);
  both(all[0]);
  std::swap(all[0], all[1]);
  both(all[1]);
}

#if PIPE_TESTS_COUNT_ALLOCATIONS  // a sanitizer needs address space of its own
TEST_CASE("a thread that cannot be started is named", "[runtime]") {
  CHECK(in_a_child([] {
    // Address space for the stack of one thread more, not for two.
    std::size_t const stack = std::size_t(256) << 20;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    pthread_setattr_default_np(&attributes);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit const limit{pages * std::size_t(getpagesize()) + stack * 3 / 2, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    try {
      Trainer t;
    } catch (error const& e) {
      return std::string(e.what()).starts_with("rank 1: cannot start its thread: ");
    }
    return false;
  }));
}
#endif
