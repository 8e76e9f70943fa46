// SPDX-License-Identifier: BSL-1.0
//
// Transports without models: what crosses an edge, in which order, within which bounds, and how
// every wait ends when a rank fails or the time is over.
#include "catch.hpp"

#include <pipe/transport/in_process/in_process.hpp>

#include "transport/messages.hpp"

#include <atomic>
#include <thread>
#include <vector>

using namespace pp;
using namespace pp::detail;
using namespace std::chrono_literals;
using test_transports::messages;

namespace {

constexpr long arena_bytes = 4096;

/// Ranks with an arena each; byte i of rank r's begins as a function of both.
template <class Transport>
struct world {
  std::vector<std::vector<char>> arenas;
  Transport link;
  transports::failure_flag failed{false};

  explicit world(int ranks, transports::patience const& limits = {.spin = 1us, .deadline = 60s})
      : link(ranks, ranks, limits) {
    for (int r = 0; r < ranks; ++r) {
      arenas.emplace_back(std::size_t(arena_bytes));
      for (long i = 0; i < arena_bytes; ++i) byte(r, i) = char(i * 7 + r * 31);
      link.set_memory(r, arenas.back().data());
    }
    link.reset();
  }
  char& byte(int rank, long at) { return arenas[std::size_t(rank)][std::size_t(at)]; }

  /// Runs body(rank) on a thread for each rank.
  template <class Body>
  void run(Body body) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < int(arenas.size()); ++r) threads.emplace_back([=] { body(r); });
  }
  void fail() {
    failed.store(true);
    link.wake_all();
  }
};

}  // namespace

TEMPLATE_TEST_CASE("a value arrives as it was made, whatever its length", "", in_process,
                   messages) {
  long const sizes[] = {0, 1, 47, 48, 49, 96, 1000};
  world<TestType> w(2);
  std::atomic<int> right{0};
  w.run([&](int r) {
    for (long const n : sizes) {
      transports::transfer const x{0, 1, 100, 2000, n};
      if (w.link.share(r, x, w.failed) != transports::waited::done) return;
      if (r == 1) {
        char const* const at = w.link.at(x);
        bool same = true;
        for (long i = 0; i < n; ++i) same = same && at[i] == char((100 + i) * 7);
        right += same;
      }
    }
  });
  CHECK(right == int(std::size(sizes)));
}
TEMPLATE_TEST_CASE("within a rank nothing moves", "", in_process, messages) {
  world<TestType> w(2);
  transports::transfer const x{1, 1, 8, 64, 32};
  CHECK(w.link.share(1, x, w.failed) == transports::waited::done);
  CHECK(w.link.at(x) == &w.byte(1, 8));
  CHECK(w.byte(1, 64) == char(64 * 7 + 31));
}
TEST_CASE("a transport that copies keeps the reader off the maker's memory") {
  world<messages> w(2);
  transports::transfer const x{0, 1, 8, 64, 32};
  w.run([&](int r) { w.link.share(r, x, w.failed); });
  CHECK(w.link.at(x) == &w.byte(1, 64));
  for (long i = 0; i < 32; ++i) w.byte(0, 8 + i) = 0;
  CHECK(w.link.at(x)[5] == char(13 * 7));
  CHECK(w.byte(1, 63) == char(63 * 7 + 31));
  CHECK(w.byte(1, 96) == char(96 * 7 + 31));
}
TEST_CASE("a transport that shares memory moves nothing") {
  world<in_process> w(2);
  transports::transfer const x{0, 1, 8, 64, 32};
  CHECK(w.link.share(0, x, w.failed) == transports::waited::done);
  CHECK(w.link.at(x) == &w.byte(0, 8));
}
TEST_CASE("messages of a pair of ranks come in order, of several pairs in any") {
  world<messages> w(3);
  constexpr int rounds = 300;
  std::atomic<int> done{0};
  w.run([&](int r) {
    for (int i = 0; i < rounds; ++i)
      for (transports::transfer const& x :
           {transports::transfer{0, 1, i, 1000 + i, 50},
            transports::transfer{2, 1, i, 2000 + i, 60}, transports::transfer{1, 0, i, 3000, 1},
            transports::transfer{0, 2, i, 3000, 70}})
        if (w.link.share(r, x, w.failed) != transports::waited::done) return;
    ++done;
  });
  CHECK(done == 3);
  for (long i = 0; i < rounds; ++i) {
    CHECK(w.byte(1, 1000 + i) == char(i * 7));
    CHECK(w.byte(1, 2000 + i) == char(i * 7 + 62));
  }
}
TEST_CASE("a send ends when its receive has taken everything, and not before") {
  world<messages> w(2);
  std::atomic<bool> sent{false}, early{false};
  transports::transfer const x{0, 1, 0, 0, 1};
  w.run([&](int r) {
    if (r == 0) {
      w.link.share(0, x, w.failed);
      sent = true;
    } else {
      std::this_thread::sleep_for(20ms);
      early = sent.load();
      w.link.share(1, x, w.failed);
    }
  });
  CHECK(sent);
  CHECK_FALSE(early);
}
TEST_CASE("two orders on one pair of ranks are found out") {
  world<messages> w(2);
  transports::transfer const a{0, 1, 0, 0, 8}, b{0, 1, 8, 8, 8};
  std::atomic<bool> noticed{false};
  w.run([&](int r) {
    try {
      for (transports::transfer const* x : {r == 0 ? &a : &b, r == 0 ? &b : &a})
        if (w.link.share(r, *x, w.failed) != transports::waited::done) return;
    } catch (std::logic_error const&) {
      noticed = true;
      w.fail();
    }
  });
  CHECK(noticed);
}
TEMPLATE_TEST_CASE("a barrier is passed by all ranks or none", "", in_process, messages) {
  constexpr int ranks = 4;
  {
    world<TestType> w(ranks);
    std::atomic<int> arrived{0}, early{0};
    w.run([&](int r) {
      for (int number = 1; number <= 50; ++number) {
        ++arrived;
        if (w.link.arrive_and_wait(r, number, w.failed) != transports::waited::done) ++early;
        if (arrived < number * ranks) ++early;
      }
    });
    CHECK(early == 0);
  }
  {
    world<TestType> w(ranks);
    std::atomic<int> passed{0};
    w.run([&](int r) {
      if (r == 0) return std::this_thread::sleep_for(5ms), w.fail();
      if (w.link.arrive_and_wait(r, 1, w.failed) == transports::waited::done) ++passed;
    });
    CHECK(passed == 0);
  }
  {
    world<TestType> w(ranks);
    CHECK(w.link.cancel_barrier(1));
    w.link.reset();
    w.run([&](int r) { w.link.arrive_and_wait(r, 1, w.failed); });
    CHECK_FALSE(w.link.cancel_barrier(1));  // all have passed
  }
}
TEMPLATE_TEST_CASE("a rank that cancels a barrier withdraws its arrival", "", in_process,
                   messages) {
  world<TestType> w(2, {.spin = 0us, .deadline = 5ms});
  CHECK(w.link.arrive_and_wait(0, 1, w.failed) == transports::waited::too_long);
  CHECK(w.link.arrive_and_wait(1, 1, w.failed) == transports::waited::too_long);
  w.run([&](int r) {  // again, where the other one comes too late
    while (w.link.arrive_and_wait(r, 1, w.failed) == transports::waited::too_long) {
    }
  });
  CHECK_FALSE(w.link.cancel_barrier(1));
}
TEST_CASE("a failing rank wakes all that send, receive or wait at a barrier") {
  world<messages> w(4, {.spin = 0us, .deadline = 300s});
  std::atomic<int> ended{0};
  w.run([&](int r) {
    if (r == 0) return std::this_thread::sleep_for(5ms), w.fail();
    transports::waited const how = r == 1   ? w.link.share(1, {1, 0, 0, 0, 8}, w.failed)
                                   : r == 2 ? w.link.share(2, {0, 2, 0, 0, 8}, w.failed)
                                            : w.link.arrive_and_wait(3, 1, w.failed);
    if (how == transports::waited::failed) ++ended;
  });
  CHECK(ended == 3);
}
TEST_CASE("a failing rank wakes all that wait for a milestone") {
  world<in_process> w(3, {.spin = 0us, .deadline = 300s});
  std::atomic<int> ended{0};
  w.run([&](int r) {
    if (r == 0) return std::this_thread::sleep_for(5ms), w.fail();
    if (w.link.wait(0, transports::milestone::forward, r, w.failed) == transports::waited::failed)
      ++ended;
  });
  CHECK(ended == 2);
}
TEST_CASE("every wait has a deadline") {
  world<messages> w(2, {.spin = 0us, .deadline = 5ms});
  CHECK(w.link.share(0, {0, 1, 0, 0, 8}, w.failed) == transports::waited::too_long);
  CHECK(w.link.share(0, {1, 0, 0, 0, 8}, w.failed) == transports::waited::too_long);
  CHECK(w.link.arrive_and_wait(0, 1, w.failed) == transports::waited::too_long);
  w.link.reset();
  std::atomic<int> done{0};
  w.run([&](int r) {
    done += w.link.share(r, {0, 1, 0, 0, 8}, w.failed) == transports::waited::done;
  });
  CHECK(done == 2);  // nothing of the old run is left
  world<in_process> shared(2, {.spin = 0us, .deadline = 5ms});
  CHECK(shared.link.wait(0, transports::milestone::forward, 0, shared.failed) ==
        transports::waited::too_long);
  CHECK(shared.link.arrive_and_wait(0, 1, shared.failed) == transports::waited::too_long);
}
