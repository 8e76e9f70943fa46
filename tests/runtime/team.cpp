// SPDX-License-Identifier: BSL-1.0
//
// The threads of a rank: each does its part of every call, exceptions come back, and nobody is left
// behind.
#include "catch.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <pipe/runtime/host/core/team.hpp>

using namespace pp;
using namespace pp::detail;
using namespace std::chrono_literals;

TEST_CASE("every part is done once, on a thread of its own", "[runtime]") {
  team one, three(3, 20us, -1);
  CHECK(one.size() == 1);
  std::array<std::thread::id, 3> first{};
  for (int call = 0; call < 500; ++call) {
    std::array<int, 3> done{};
    std::array<std::thread::id, 3> on{};
    three.run([&](int part) {
      ++done[std::size_t(part)];
      on[std::size_t(part)] = std::this_thread::get_id();
    });
    REQUIRE(done == std::array{1, 1, 1});
    REQUIRE(std::set(on.begin(), on.end()).size() == 3);
    REQUIRE(on[0] == std::this_thread::get_id());
    if (call == 0) first = on;
    REQUIRE(on == first);
  }
  int parts = 0;
  one.run([&](int part) { parts += part + 1; });
  CHECK(parts == 1);
}

TEST_CASE("a team that sleeps is woken", "[runtime]") {
  team two(2, 0ns, -1);
  std::atomic<int> calls{0};
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(2ms);
    two.run([&](int) { ++calls; });
  }
  CHECK(calls == 10);
}

TEST_CASE("an exception of any part is thrown when all are done", "[runtime]") {
  team four(4, 20us, -1);
  for (int bad = 0; bad < 4; ++bad) {
    std::atomic<int> others{0};
    CHECK_THROWS_WITH(four.run([&](int part) {
      if (part == bad) throw std::runtime_error("part " + std::to_string(part));
      ++others;
    }),
                      "part " + std::to_string(bad));
    CHECK(others == 3);
  }
  std::atomic<int> calls{0};
  four.run([&](int) { ++calls; });
  CHECK(calls == 4);
}

TEST_CASE("a team may be assembled later, and may be sent home unused", "[runtime]") {
  team unused(2, 20us, -1), late;
  std::atomic<int> calls{0};
  late.run([&](int) { ++calls; });
  CHECK(calls == 1);
  late.assemble(3, 0ns, -1);
  late.run([&](int) { ++calls; });
  CHECK(calls == 4);
}

TEST_CASE("a count goes on beyond the largest int", "[runtime]") {
  progress p;
  transports::failure_flag never{false};
  int const last = std::numeric_limits<int>::max(), next = progress::after(last);
  p.reset(last);
  CHECK(p.wait(last, {}, never) == transports::waited::done);
  CHECK(p.wait(next, {.spin = 0ns, .deadline = 1ms}, never) == transports::waited::too_long);
  p.advance();
  CHECK(p.now() == next);
  CHECK(p.wait(last, {}, never) == transports::waited::done);
  CHECK(p.wait(next, {}, never) == transports::waited::done);
}
