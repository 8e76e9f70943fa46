// SPDX-License-Identifier: BSL-1.0
//
// Owners of one object: what is owned is ended once, by the last owner that has it.
#include "catch.hpp"

#include <utility>
#include <vector>

#include <pipe/base/owner.hpp>

using namespace pp;

namespace {
int ended = 0;
int end(int*) { return ++ended; }
using number = detail::owner<int, decltype(end)*>;

struct counted {
  static inline int alive = 0;
  counted() { ++alive; }
  ~counted() { --alive; }
  int value = 7;
};
}  // namespace

TEST_CASE("an owner ends what it has once, wherever it moves", "[base]") {
  int one = 1, two = 2;
  ended = 0;
  {
    number a(&one, &end), nothing, null(nullptr);
    CHECK(nothing == nullptr);
    CHECK(null == nullptr);
    CHECK(*a == 1);
    number b = std::move(a);
    CHECK(a == nullptr);
    CHECK(b.get() == &one);
    nothing = std::move(b);
    CHECK(nothing.get() == &one);
    CHECK(ended == 0);
  }
  CHECK(ended == 1);
  {
    number a(&one, &end);
    a = number(&two, &end);
    CHECK(a.get() == &two);
    CHECK(ended == 2);
  }
  CHECK(ended == 3);
}

TEST_CASE("an owner of an object that new made deletes it", "[base]") {
  {
    std::vector<detail::owner<counted>> all;
    for (int i = 0; i < 5; ++i) all.push_back(detail::owner<counted>(new counted));
    CHECK(counted::alive == 5);
    CHECK(all[4]->value == 7);
  }
  CHECK(counted::alive == 0);
}
