// SPDX-License-Identifier: BSL-1.0
//
// How replicas divide a chunk: what each owns, and the ring in which divided parameters are whole.
#include "catch.hpp"

#include <pipe/runtime/host/replicas/parameter_ring.hpp>
#include <pipe/runtime/shards.hpp>

#include <vector>

using namespace pp::detail;

namespace {

constexpr long width = 4, block = gradient_block::most_elements;

/// A chunk of vectors, the first `divided` of which replicas divide; one update range over all.
struct vectors {
  std::vector<parameter_place> places;
  update_range range;
  chunk_description chunk;

  explicit vectors(std::vector<int> const& sizes, int divided = 0) {
    long offset = 0;
    for (int const n : sizes) {
      parameter_place p;
      p.index = p.layer = int(places.size());
      p.rows = 1, p.columns = n, p.offset = offset;
      places.push_back(p);
      offset += align_up(n * width);
      if (p.index < divided) chunk.sizes.divided = offset;
    }
    range.end = range.shape.columns = offset / width;
    range.shape.rows = 1;
    range.state_size = 2 * range.end;
    chunk.parameters = {places.data(), int(places.size())};
    chunk.updates = {&range, 1};
    chunk.sums = chunk.state = chunk.sizes.trained = offset;
  }
};

/// Whether a position begins a block of a parameter, or is the end.
bool is_cut(vectors const& v, long at) {
  bool is = at == v.chunk.sizes.trained;
  for (parameter_place const& p : v.places)
    is = is || (at >= p.offset && at < p.offset + p.columns * width &&
                (at - p.offset) % (block * width) == 0);
  return is;
}

}  // namespace

TEST_CASE("every byte has one owner, and cuts are at blocks") {
  for (vectors const& v :
       {vectors({5}), vectors({40'000, 7, 100'000}), vectors({40'000, 2'500'000, 3'000'000, 7, 9}),
        vectors({40'000, 2'500'000, 3'000'000, 7, 9}, 3)})
    for (int replicas : {1, 2, 3, 8, 70}) {
      shard_cuts const cuts{v.chunk, width, replicas};
      long at = 0;
      for (int b = 0; b < cuts.buckets(); ++b) {
        CHECK(cuts.begin_of(b) == at);
        for (int s = 0; s < replicas; ++s) {
          CHECK(cuts.begin_of(b, s) == at);
          CHECK(is_cut(v, at));
          int const owner = cuts.replica_of(b, s);
          CHECK(cuts.shard_of(b, owner) == s);
          long const end = cuts.begin_of(b, s + 1);
          CHECK(end >= at);
          if (end > at) {
            CHECK(cuts.owner_of(at) == owner);
            CHECK(cuts.owner_of(end - 1) == owner);
            CHECK(cuts.bucket_of(at) == b);
          }
          at = end;
        }
        CHECK(cuts.begin_of(b + 1) - cuts.begin_of(b) <= most_bucket_bytes + block * width);
      }
      CHECK(at == v.chunk.sizes.trained);
    }
}
TEST_CASE("replicas update every element once, and have its state once") {
  for (vectors const& v : {vectors({5}), vectors({40'000, 2'500'000, 3'000'000, 7, 9}),
                           vectors({40'000, 2'500'000, 3'000'000, 7, 9}, 3)})
    for (int replicas : {1, 2, 5, 16}) {
      std::vector<char> seen(std::size_t(v.range.end));
      long all = 0;
      bool alone = true, follows = true;
      for (int r = 0; r < replicas; ++r) {
        long state = 0;
        long const end =
            for_each_owned({v.chunk, width, replicas}, r, 0, [&](update_range const& u) {
              follows = follows && u.state == state && u.state_size == 2 * (u.end - u.begin);
              state = u.state + u.state_size;
              for (long i = u.begin; i < u.end; ++i) alone = alone && ++seen[std::size_t(i)] == 1;
            });
        follows = follows && end == state;
        all += end;
      }
      CHECK(alone);
      CHECK(follows);
      CHECK(all == v.range.state_size);
    }
}
TEST_CASE("a tensor that is updated as a whole has one owner") {
  vectors v({3'000'000, 9});
  v.range.whole = true;
  int owners = 0;
  for (int r = 0; r < 4; ++r)
    for_each_owned({v.chunk, width, 4}, r, 0, [&](update_range const& u) {
      ++owners;
      CHECK(u.end - u.begin == v.range.end);
    });
  CHECK(owners == 1);
}
TEST_CASE("a ring holds parameters until the first must leave") {
  char memory[100];
  parameter_ring ring;
  ring.assemble(memory, 100, 5);
  CHECK(ring.take(0, 40) == memory);
  CHECK(ring.take(1, 40) == memory + 40);
  CHECK(ring.take(2, 40) == nullptr);
  CHECK(ring.find(0) == memory);
  CHECK(ring.first() == 0);
  ring.drop_first();
  CHECK(ring.find(0) == nullptr);
  CHECK(ring.take(2, 40) == memory);  // 20 bytes at the end are too few
  CHECK(ring.take(3, 10) == nullptr);
  ring.drop_first();
  CHECK(ring.take(3, 60) == memory + 40);
  CHECK(ring.find(2) == memory);
  ring.drop_first();
  CHECK(ring.take(4, 40) == memory);
  CHECK(ring.first() == 3);
  ring.clear();
  CHECK(ring.is_empty());
  CHECK(ring.find(4) == nullptr);
  CHECK(ring.take(0, 101) == nullptr);
}
