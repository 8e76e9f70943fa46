// SPDX-License-Identifier: BSL-1.0
#include "catch.hpp"
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using pp::schedules::placement;

static_assert(pp::schedules::rank_of(placement::straight, 4, 3) == 3);
static_assert(pp::schedules::rank_of(placement::loop, 4, 6) == 2);
static_assert(pp::schedules::rank_of(placement::vee, 4, 4) == 3 &&
              pp::schedules::rank_of(placement::vee, 4, 7) == 0);
static_assert(pp::schedules::rank_of(placement::bidirectional, 4, 1, 0) == 1 &&
              pp::schedules::rank_of(placement::bidirectional, 4, 1, 1) == 2);

TEST_CASE("every chunk lies on one rank, and every rank knows its chunks", "[placement]") {
  for (placement where : reference::placements) {
    bool const many = where == placement::loop || where == placement::vee;
    for (int ranks = 1; ranks <= 9; ++ranks)
      for (int wanted = 1; wanted <= (many ? 5 : 1); ++wanted) {
        int const chunks_per_rank = wanted * pp::schedules::replicas(where);
        int const chunks = pp::schedules::chunks_for(where, ranks, chunks_per_rank);
        REQUIRE(chunks == ranks * wanted);
        std::vector<int> seen(static_cast<std::size_t>(chunks), 0);
        for (int rank = 0; rank < ranks; ++rank)
          for (int i = 0; i < chunks_per_rank; ++i) {
            int const chunk = pp::schedules::chunk_on(where, ranks, rank, i);
            REQUIRE((chunk >= 0 && chunk < chunks));
            ++seen[static_cast<std::size_t>(chunk)];
            int const replica = i % pp::schedules::replicas(where);
            REQUIRE(pp::schedules::rank_of(where, ranks, chunk, replica) == rank);
          }
        for (int count : seen) REQUIRE(count == pp::schedules::replicas(where));
        for (int chunk = 0; chunk < chunks; ++chunk)
          for (int mb = 0; mb < 4; ++mb)
            REQUIRE(pp::schedules::rank_of(where, ranks, chunk, mb) ==
                    reference::holder(where, ranks, chunk, mb));
      }
  }
}

TEST_CASE("kinds have the letters of the papers", "[action]") {
  using enum pp::schedules::action_kind;
  std::string letters;
  for (auto kind : {forward, backward_input, backward_weight, backward, recompute, update})
    letters += std::string(pp::schedules::short_name(kind)) + " ";
  REQUIRE(letters == "F B W BW R U ");
  REQUIRE(std::string(pp::schedules::short_name(static_cast<pp::schedules::action_kind>(77))) ==
          "?");
}

}  // namespace
