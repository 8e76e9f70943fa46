// SPDX-License-Identifier: BSL-1.0
//
// Many trainers, many steps, more ranks than cores.
#include "catch.hpp"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "runtime/trainers.hpp"

namespace {

/// How often each thread of this process but the calling one has gone to sleep so far.
std::map<int, long> sleeps() {
  std::map<int, long> of;
  for (auto const& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "status");
    long times = -1;
    for (std::string word; file >> word;)
      if (word == "voluntary_ctxt_switches:") file >> times;
    of[std::stoi(task.path().filename())] = times;
  }
  of.erase(int(gettid()));
  return of;
}

/// Threads that may run on a single core, of all but the calling one.
int bound_threads() {
  int count = 0;
  for (auto const& [thread, unused] : sleeps()) {
    cpu_set_t set;
    if (sched_getaffinity(thread, sizeof set, &set) == 0) count += CPU_COUNT(&set) == 1;
  }
  return count;
}

}  // namespace

TEST_CASE("trainers come and go", "[runtime]") {
  laws::sample_batch<tiny::SevenRanks> const data(1);
  for (int i = 0; i < 40; ++i) {
    tiny::SevenRanks trainer;
    if (i % 2 == 0) trainer.step(data.view());
    tiny::ThreeThreads threads;
    if (i % 2 == 1) threads.step({data.inputs, data.labels});
  }
  std::vector<std::unique_ptr<tiny::LateWeights>> together;
  for (int i = 0; i < 8; ++i) together.push_back(std::make_unique<tiny::LateWeights>());
  for (auto& t : together) t->step({data.inputs, data.labels});
  for (auto& t : together)
    CHECK(laws::same_numbers(laws::snapshot(*t).values, laws::snapshot(*together[0]).values));
  while (!together.empty()) together.erase(together.begin() + long(together.size() / 2));
}

TEST_CASE("200 calls in random order give the bits of one rank", "[runtime]") {
  tiny::OneRank one;
  tiny::SevenRanks seven;
  tiny::TwoChunks two;
  tiny::ThreeThreads threads;
  std::vector<float> outputs(
      std::size_t(tiny::OneRank::samples * tiny::OneRank::outputs_per_sample)),
      others(outputs.size());
  for (std::uint64_t call = 0; call < 200; ++call) {
    laws::sample_batch<tiny::OneRank> const data(call);
    auto const everywhere = [&](auto ask) {
      auto const expected = ask(one);
      CHECK(laws::same_bits(expected, ask(seven)));
      CHECK(laws::same_bits(expected, ask(two)));
      CHECK(laws::same_bits(expected, ask(threads)));
    };
    auto const batch = [&]<class Trainer>(Trainer&) {
      return typename Trainer::batch{data.inputs, data.labels};
    };
    switch (int((laws::uniform(9, 9, call) + 1) * 3)) {
      case 0: everywhere([&](auto& t) { return t.evaluate(batch(t)); }); break;
      case 1: everywhere([&](auto& t) { return t.gradients(batch(t)).gradient_norm; }); break;
      case 2:
        one.forward(data.inputs, outputs);
        seven.forward(data.inputs, others);
        CHECK(laws::same_numbers(outputs, others));
        break;
      default: everywhere([&](auto& t) { return t.step(batch(t)).loss; });
    }
  }
  CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(seven).values));
  CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(two).values));
  CHECK(laws::same_numbers(laws::snapshot(one).values, laws::snapshot(threads).values));
}

TEST_CASE("an idle trainer sleeps", "[runtime]") {
  laws::sample_batch<tiny::SevenRanks> const data(1);
  auto const others = sleeps();
  tiny::SevenRanks ranks;
  tiny::ThreeThreads threads;
  ranks.step(data.view());
  threads.step({data.inputs, data.labels});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the last thread has parked
  auto before = sleeps();
  for (auto const& [thread, times] : others) before.erase(thread);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  auto const after = sleeps();
  CHECK(before.size() == 7 + 2 * 3);
  long woken = 0;
  for (auto const& [thread, times] : before) {
    CHECK(times >= 0);
    woken += after.at(thread) - times;
  }
  CHECK(woken <= 2);  // with wake-ups 20 ms apart there were some 200
  CHECK(
      laws::same_bits(ranks.step(data.view()).loss, threads.step({data.inputs, data.labels}).loss));
}

TEST_CASE("threads are bound to cores on demand only", "[runtime]") {
  if (pp::detail::allowed_cores() < 2) {
    WARN("skipped: on one core every thread is bound already");
    return;
  }
  int const others = bound_threads();
  {
    tiny::OneRank const free;
    CHECK(bound_threads() == others);
  }
  tiny::OneRank const bound({.runtime = {.pin = true}});
  CHECK(bound_threads() == others + 1);
}
