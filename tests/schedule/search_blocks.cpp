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
/// The idle ticks of the order that the search finds, beyond those known.
long beyond_known(int p, int m, int chunks) {
  auto const problem = equal_times(p, m, {}, 0, 2);
  dynamic_table table(p, placement::vee);
  search(problem, table, search_options{objective::stage_local_span, chunks});
  REQUIRE(validate(problem, table).ok());
  for (int rank = 0; rank < p; ++rank) REQUIRE(peak_memory(problem, table, rank) <= chunks);
  return simulate(problem, table).stage_local_span() - 6 * m - known(p, chunks);
}

/// With P micro-batches the known times are reached, but on three ranks, where a constraint solver
/// refutes one, and for two others. With 2 P they are reached within a tick; in P chunks of memory
/// with few ranks no long step can reach them.
void require_known(int p, int chunks) {
  INFO("p " << p << ", " << chunks << " chunks");
  long const more = (p == 3 && chunks == 3) || (p == 8 && chunks == 14) ? 2
                    : p == 7 && chunks == 12                            ? 1
                                                                        : 0;
  CHECK(beyond_known(p, p, chunks) <= more);
  if (p > 3) CHECK(beyond_known(p, 2 * p, chunks) <= (p == 5 && chunks == 5 ? 3 : 1));
}

TEST_CASE("orders on a small V are idle for no longer than the best ones known", "[search]") {
  for (int chunks : {5, 7, 8}) require_known(5, chunks);
  for (int chunks : {4, 6}) require_known(4, chunks);
}
TEST_CASE("orders on a V are idle for no longer than the best ones known", "[search][long]") {
  for (int p = 2; p <= 8; ++p)
    for (int chunks = p; chunks <= 2 * p - 2; ++chunks) require_known(p, chunks);
}

}  // namespace
