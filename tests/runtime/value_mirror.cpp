// SPDX-License-Identifier: BSL-1.0
//
// Parameters that replicas divide, whole, for a program.
#include "catch.hpp"

#include <pipe/runtime/host/replicas/value_mirror.hpp>

#include <numeric>
#include <vector>

using namespace pp::detail;

namespace {

/// An executor of one chunk, the first 8 bytes of whose parameters are elsewhere.
struct executor {
  char arena[64], elsewhere[8];
  bool comes = true;
  int collections = 0, cleared = 0;
  struct ways {
    executor& e;
    void clear() { ++e.cleared; }  // what a window has brought may be older than the parameters
    pp::transports::waited collect(int, char* to) {
      ++e.collections;
      std::memcpy(to, e.elsewhere, 8);
      return e.comes ? pp::transports::waited::done : pp::transports::waited::failed;
    }
    void distribute(int, char const* from) { std::memcpy(e.elsewhere, from, 8); }
  };
  executor() {
    std::iota(arena, arena + 64, char(0));
    std::iota(elsewhere, elsewhere + 8, char(100));
  }
  char* memory(int) { return arena; }
  executor(executor const&) = delete;
  ways& windows(int) { return ways_; }

 private:
  ways ways_{*this};
};
/// Parameters at 16, of which the first 8 bytes are divided.
struct one_chunk {
  chunk_description chunk;
  pipeline_description d;
  one_chunk() {
    chunk.values = 16, chunk.sizes.divided = 8;
    d.chunk = &chunk;
  }
};

}  // namespace

TEST_CASE("a copy has the divided parameters at their offsets") {
  one_chunk const c;
  executor e;
  value_mirror mirror;
  char const* const all = mirror.of(c.d, 0, e);
  for (int i = 0; i < 8; ++i) CHECK(all[i] == 100 + i);
  CHECK(mirror.of(c.d, 0, e) == all);
  CHECK(e.collections == 1);
  CHECK(e.cleared == 1);
  mirror.forget();
  e.elsewhere[0] = 7;
  CHECK(mirror.of(c.d, 0, e)[0] == 7);
}
TEST_CASE("copies are renewed where they are") {
  one_chunk const c;
  executor e;
  value_mirror mirror;
  mirror.renew(e);  // no copy
  CHECK(e.collections == 0);
  char const* const all = mirror.of(c.d, 0, e);
  e.elsewhere[0] = 7;
  CHECK(all[0] == 100);
  mirror.renew(e);
  CHECK(all[0] == 7);
  char const values[2] = {8, 9};
  parameter_place place{};
  place.offset = 4;
  mirror.renew(0, place, values, 2);
  CHECK(all[4] == 8);
  CHECK(all[5] == 9);
}
TEST_CASE("what is written to a copy is taken over") {
  one_chunk const c;
  executor e, before;
  value_mirror mirror;
  mirror.write_back(e);  // no copy
  char* const all = mirror.of(c.d, 0, e);
  mirror.write_back(e);
  CHECK(std::memcmp(e.arena, before.arena, 64) == 0);
  CHECK(std::memcmp(e.elsewhere, before.elsewhere, 8) == 0);
  all[1] = 1;
  mirror.write_back(e);
  CHECK(e.elsewhere[1] == 1);
  CHECK(std::memcmp(e.arena, before.arena, 64) == 0);
}
TEST_CASE("a copy that another replica takes no part in is an error") {
  one_chunk const c;
  executor e;
  e.comes = false;
  value_mirror mirror;
  CHECK_THROWS_AS(mirror.of(c.d, 0, e), pp::rank_error);
}
