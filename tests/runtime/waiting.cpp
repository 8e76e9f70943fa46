// SPDX-License-Identifier: BSL-1.0
//
// Waiting ends: with what was waited for, with a failure, or with the deadline.
#include "catch.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include <pipe/transport/in_process/in_process.hpp>

using namespace pp;
using namespace pp::detail;
using namespace std::chrono_literals;
using seconds = std::chrono::duration<double>;

namespace {
auto now() { return std::chrono::steady_clock::now(); }
}  // namespace

TEST_CASE("what was published before the wait is there at once", "[runtime]") {
  progress p;
  transports::failure_flag failed{true};  // done goes before failed
  p.publish(3);
  CHECK(p.wait(3, {.spin = 0ns, .deadline = 0ms}, failed) == transports::waited::done);
  CHECK(p.wait(-5, {}, failed) == transports::waited::done);
  CHECK(p.now() == 3);
  p.reset();
  CHECK(p.now() == 0);
}

TEST_CASE("a wait ends with the deadline, not before", "[runtime]") {
  progress p;
  transports::failure_flag failed{false};
  for (auto spin : {0ns, 30'000ns}) {
    auto const start = now();
    CHECK(p.wait(1, {.spin = spin, .deadline = 50ms}, failed) == transports::waited::too_long);
    CHECK(seconds(now() - start).count() >= 0.05);
  }
}

TEST_CASE("a failure wakes everybody who waits", "[runtime]") {
  in_process board(1, 2, {.spin = 1000ns, .deadline = 300s});
  transports::failure_flag failed{false};
  std::vector<std::thread> waiting;
  std::atomic<int> woken{0};
  for (int chunk = 0; chunk < 2; ++chunk)
    for (auto m : {transports::milestone::forward, transports::milestone::input_gradient,
                   transports::milestone::release})
      waiting.emplace_back([&, chunk, m] {
        woken += board.wait(chunk, m, 0, failed) == transports::waited::failed;
      });
  std::this_thread::sleep_for(20ms);
  failed = true;
  board.wake_all();
  for (std::thread& t : waiting) t.join();
  CHECK(woken == 6);
}

TEST_CASE("values pass between threads in both directions", "[runtime]") {
  in_process board(1, 2, {.spin = 0ns});
  transports::failure_flag failed{false};
  constexpr int rounds = 3000;
  std::vector<long> there(rounds), back(rounds);  // plain memory: the board orders the accesses
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      if (board.wait(0, transports::milestone::forward, i, failed) != transports::waited::done)
        return;
      back[std::size_t(i)] = there[std::size_t(i)] * 2;
      board.publish(1, transports::milestone::input_gradient, i);
    }
  });
  bool right = true;
  for (int i = 0; i < rounds; ++i) {
    there[std::size_t(i)] = i + 7;
    board.publish(0, transports::milestone::forward, i);
    right = right &&
            board.wait(1, transports::milestone::input_gradient, i, failed) ==
                transports::waited::done &&
            back[std::size_t(i)] == 2 * (i + 7);
  }
  other.join();
  CHECK(right);
  CHECK(board.wait(0, transports::milestone::release, -1, failed) == transports::waited::done);
}

TEST_CASE("an arrival can be taken back until all are there", "[runtime]") {
  progress p;
  p.add();
  CHECK(p.withdraw(2));
  CHECK(p.now() == 0);
  p.add();
  p.add();
  CHECK_FALSE(p.withdraw(2));
  CHECK(p.now() == 2);

  // Two threads arrive; one of them gives up at some moment. Both must see the same outcome.
  transports::failure_flag failed{false};
  for (int round = 0; round < 300; ++round) {
    p.reset();
    auto const meet = [&](std::chrono::milliseconds deadline) {
      p.add();
      bool const met =
          p.wait(2, {.spin = 0ns, .deadline = deadline}, failed) == transports::waited::done ||
          !p.withdraw(2);
      if (!met) failed = true;
      return met;
    };
    bool first = false, second = false;
    std::thread a([&] { first = meet(0ms); });
    std::thread b([&] { second = meet(300'000ms); });
    a.join();
    b.join();
    CHECK(first == second);
    failed = false;
  }
}
