// SPDX-License-Identifier: BSL-1.0
//
// Looks for the best schedule under several limits of memory, and prints the certificate of each:
// what it achieves, and what no schedule can beat.
#include <cstdio>

#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/schedule/search/search.hpp>

int main() {
  std::puts("memory  bubble of the span  span, us  no order is below  to gain at most");
  // [search]
  // A GPT of 6.2 billion parameters on eight devices: microseconds of F, B and W, and what they add
  // to the memory; of a hop.
  auto problem =
      pp::schedules::equal_times(8, 32, {29802, 29428, 19530, {303104, -172032, -131072}}, 577);
  long const of_1f1b = pp::schedules::memory_of_1f1b(problem, pp::schedules::placement::straight);
  for (double part : {1.0, 1.25, 1.5, 1.75, 2.0, 2.625, 2.75}) {
    problem.limit = static_cast<long>(part * static_cast<double>(of_1f1b));
    auto const table = pp::schedules::make_dynamic_table<pp::Searched<>>(problem);
    pp::schedules::certificate const found = pp::schedules::certify(problem, table);
    double const bubble = pp::schedules::simulate(problem, table).bubble_by_stage_local_span();
    std::printf("%6.3f  %18.4f  %8ld  %17ld  %15ld\n", part, bubble,
                found.achieved.stage_local_span, found.floor.stage_local_span, found.gap());
  }
  // [/search]
}
