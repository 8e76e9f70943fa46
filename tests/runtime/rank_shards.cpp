// SPDX-License-Identifier: BSL-1.0
//
// The memory of what a replica updates, measures and gives to the others.
#include "catch.hpp"

#include "runtime/replicas.hpp"

using namespace replicas;

namespace {

/// Replicas whose memory can be compared.
struct some {
  lanes_between::office office;
  std::deque<replica> all;
  some(matrices const& model, int count) {
    for (int r = 0; r < count; ++r) all.emplace_back(model, office, r, count);
  }
};
/// The offset of an address in a replica's arena.
long place_of(replica& r, void const* p) { return static_cast<char const*>(p) - r.start(); }

}  // namespace

TEST_CASE("numbers of updates are where the level of ZeRO keeps them") {
  for (int zero : {0, 1, 2, 3}) {
    matrices const model(3, zero);
    some replicas(model, 2);
    long elements = 0;
    for (replica& r : replicas.all) {
      long gradients = r.end.gradients, values = r.end.values, state = r.end.state;
      for (owned_update<float> const& u : r.shards.updates_of(0)) {
        long const begin = u.of.begin * matrices::width, bytes = (u.of.end - u.of.begin) * 4;
        bool const divided = begin < model.chunk.sizes.divided;
        // Own parts lie one after the other.
        CHECK(place_of(r, u.gradients) == (divided ? gradients : model.bytes + begin));
        CHECK(place_of(r, u.values) == (divided && zero > 2 ? values : begin));
        if (zero > 0) CHECK(place_of(r, u.state) == state);
        if (divided) gradients += bytes, values += bytes;
        state += 2 * bytes;
        elements += u.of.end - u.of.begin;
      }
    }
    CHECK(elements == model.range.end * (zero > 0 ? 1 : 2));
  }
}
TEST_CASE("a block is measured where all of its gradient is, and all get its square") {
  for (int zero : {1, 2, 3}) {
    matrices const model(3, zero);
    some replicas(model, 3);
    std::vector<int> measured(model.blocks().size());
    for (replica& r : replicas.all) {
      for (std::size_t i = 0; i < measured.size(); ++i)
        if (r.shards.measures(long(i))) {
          ++measured[i];
          CHECK(r.shards.gradient_of(long(i)) != nullptr);
          r.blocks[i].square = double(i + 1), r.blocks[i].clamped_square = double(i) / 2;
        }
      r.shards.pack(r.blocks.data());
    }
    for (int const n : measured) CHECK(n == 1);
    for (replica& to : replicas.all) {
      for (replica& from : replicas.all) {
        replica_range const a = from.shards.squares_of(from.place.replica, 0),
                            b = to.shards.squares_of(from.place.replica, 0);
        REQUIRE(a.bytes == b.bytes);
        std::memcpy(b.data, a.data, std::size_t(a.bytes));
      }
      to.shards.unpack(to.blocks.data());
      for (std::size_t i = 0; i < measured.size(); ++i) {
        CHECK(to.blocks[i].square == double(i + 1));
        CHECK(to.blocks[i].clamped_square == double(i) / 2);
      }
      CHECK(to.shards.squares_of(0, 1).bytes == 0);
    }
  }
}
TEST_CASE("replicas give each other all parameters that each has whole") {
  for (int zero : {1, 2, 3}) {
    matrices const model(3, zero);
    some replicas(model, 3);
    for (replica& r : replicas.all) {
      std::vector<int> times(std::size_t(model.bytes));
      for (int from = 0; from < 3; ++from)
        for (long n = 0;; ++n) {
          replica_range const run = r.shards.values_of(from, n);
          if (run.bytes == 0) break;
          long const first = place_of(r, run.data);
          for (long at = first; at < first + run.bytes; ++at) ++times[std::size_t(at)];
        }
      long const divided = zero > 2 ? model.chunk.sizes.divided : 0;
      for (long at = 0; at < model.bytes; ++at)
        if (times[std::size_t(at)] != (at >= divided)) FAIL("byte " << at);
    }
  }
}
