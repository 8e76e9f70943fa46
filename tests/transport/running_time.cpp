// SPDX-License-Identifier: BSL-1.0
//
// Time in which a process runs, by which waits for other processes end.
#include "catch.hpp"

#include <pipe/transport/running_time.hpp>
#include <pipe/transport/waiting.hpp>

#include <unistd.h>

using namespace pp;
using pp::detail::running_time;
using namespace std::chrono_literals;

TEST_CASE("A pause counts as the longest time between two looks") {
  running_time time(1ms);
  usleep(20'000);
  CHECK(time.look() == 1ms);
  usleep(20'000);
  CHECK(time.look() == 1ms);
  CHECK(time.total() == 2ms);
}

TEST_CASE("Skipped time does not count") {
  running_time time(1h);
  usleep(20'000);
  time.skip();
  CHECK(time.look() < 20ms);
}

TEST_CASE("A deadline is passed once the total is beyond it, and no deadline ever is") {
  running_time time(5ms);
  CHECK_FALSE(time.is_beyond(1ms));
  usleep(10'000);
  time.look();
  CHECK(time.is_beyond(1ms));
  CHECK(time.is_beyond(4ms));
  CHECK_FALSE(time.is_beyond(5ms));
  CHECK_FALSE(time.is_beyond(0ms));
  CHECK_FALSE(
      time.is_beyond(transports::no_deadline));  // more milliseconds than there are nanoseconds
}
