// SPDX-License-Identifier: BSL-1.0
//
// Arrays of a size that is known when they are made: zeros at first, moved without moving an item,
// each item destroyed once.
#include "catch.hpp"

#include <utility>

#include <pipe/base/heap_array.hpp>

using namespace pp;

namespace {
struct counted {
  static inline int alive = 0;
  counted() { ++alive; }
  counted(counted const&) = delete;
  ~counted() { --alive; }
};
}  // namespace

TEST_CASE("a heap_array begins with zeros and keeps what is written", "[base]") {
  detail::heap_array<double> numbers(3);
  REQUIRE(numbers.size() == 3);
  for (double n : numbers) CHECK(n == 0);
  numbers[1] = 2;
  CHECK(*(std::as_const(numbers).begin() + 1) == 2);
  CHECK(detail::heap_array<double>().begin() == detail::heap_array<double>().end());
}

TEST_CASE("a heap_array that moves keeps its items where they are", "[base]") {
  {
    detail::heap_array<counted> two(2), five(5);
    CHECK(counted::alive == 7);
    counted const* const first = five.begin();
    detail::heap_array<counted> moved = std::move(five);
    CHECK(moved.begin() == first);
    CHECK(five.size() == 0);
    two = std::move(moved);
    CHECK(two.begin() == first);
    CHECK(two.size() == 5);
  }
  CHECK(counted::alive == 0);
}
