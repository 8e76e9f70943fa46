// SPDX-License-Identifier: BSL-1.0
//
// Whole parameters for a program where replicas divide them.
#include "catch.hpp"

#include <pipe/runtime/host/value_mirror.hpp>

#include <numeric>
#include <vector>

using namespace pp::detail;

namespace {

/// An executor of one chunk, the first 8 bytes of whose parameters are elsewhere.
struct executor {
  char arena[64], elsewhere[8];
  bool comes = true;
  int collections = 0;
  struct ways {
    executor& e;
    pp::waited collect(int, char* to) {
      ++e.collections;
      std::memcpy(to, e.elsewhere, 8);
      return e.comes ? pp::waited::done : pp::waited::failed;
    }
    void distribute(int, char const* from) { std::memcpy(e.elsewhere, from, 8); }
  };
  executor() {
    std::iota(arena, arena + 64, char(0));
    std::iota(elsewhere, elsewhere + 8, char(100));
  }
  char* memory(int) { return arena; }
  ways windows(int) { return {*this}; }
};
/// Parameters at 16, of which 8 bytes are divided; the state, which is not copied, at 48.
struct one_chunk {
  chunk_description chunk;
  pipeline_description d;
  one_chunk() {
    chunk.values = 16, chunk.divided_bytes = 8, chunk.state = 48;
    d.chunk = &chunk;
  }
};

}  // namespace

TEST_CASE("a copy has all parameters at their offsets") {
  one_chunk const c;
  executor e;
  value_mirror mirror;
  char const* const all = mirror.of(c.d, 0, e);
  for (int i = 0; i < 8; ++i) CHECK(all[16 + i] == 100 + i);
  for (int i = 24; i < 48; ++i) CHECK(all[i] == i);
  CHECK(mirror.of(c.d, 0, e) == all);
  CHECK(e.collections == 1);
  mirror.forget();
  e.elsewhere[0] = 7;
  CHECK(mirror.of(c.d, 0, e)[16] == 7);
}
TEST_CASE("what is written to a copy is taken over") {
  one_chunk const c;
  executor e, before;
  value_mirror mirror;
  mirror.write_back(c.d, e);  // no copy
  char* const all = mirror.of(c.d, 0, e);
  mirror.write_back(c.d, e);
  CHECK(std::memcmp(e.arena, before.arena, 64) == 0);
  CHECK(std::memcmp(e.elsewhere, before.elsewhere, 8) == 0);
  all[17] = 1, all[47] = 2;
  mirror.write_back(c.d, e);
  CHECK(e.elsewhere[1] == 1);
  CHECK(e.arena[47] == 2);
  CHECK(e.arena[17] == 17);  // no parameter of this replica
  CHECK(e.arena[48] == 48);
}
TEST_CASE("a copy that another replica takes no part in is an error") {
  one_chunk const c;
  executor e;
  e.comes = false;
  value_mirror mirror;
  CHECK_THROWS_AS(mirror.of(c.d, 0, e), pp::rank_error);
}
