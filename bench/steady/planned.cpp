// SPDX-License-Identifier: BSL-1.0
//
// The bubble of steps that follow each other without a barrier: of one step, of ten and of a
// hundred, planned, and in the long run.
//
// Times of the 6.2B model on eight devices: Qi et al., Zero Bubble Pipeline Parallelism, 2024,
// measured, in microseconds; memory F adds 34h + 5as per micro-batch, W gives back 32h, B the rest
// (a = 32, h = 4096, s = 1024). On a V with equal times every action of a chunk takes one unit.
//
// steady_bubble_100     makespan of 100 steps, searched in twice the memory of 1F1B, 6.2B times
// steady_bubble_100_1p  the same in the memory of 1F1B, on a V, equal times without hops
#include <algorithm>
#include <chrono>
#include <cstdio>

#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <pipe/schedule/period.hpp>
#include <pipe/schedule/validate.hpp>

using namespace pp;

namespace {

constexpr int ranks = 8;
constexpr long width = 4096, added = 34 * width + 5 * 32 * 1024, by_w = 32 * width;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// limit: in times the memory of 1F1B
schedules::run_time_problem question(int micro_batches, int chunks_per_rank,
                                     schedules::chunk_cost const& chunk, long hop, double limit) {
  schedules::run_time_problem problem{ranks, ranks * chunks_per_rank, micro_batches, hop, {}};
  problem.costs.assign(std::size_t(problem.chunks), chunk);
  problem.limit = long(limit * double(ranks * chunks_per_rank * chunk.memory.forward));
  return problem;
}
schedules::run_time_problem large(int micro_batches, double limit) {
  return question(micro_batches, 1, {29935, 29621, 19388, {added, by_w - added, -by_w}}, 535,
                  limit);
}
schedules::run_time_problem vee(int micro_batches) {
  return question(micro_batches, 2, {1, 1, 1}, 0, 1);
}

/// Proves and times 1, 10 and 100 steps of a table, prints a line, and returns the bubble of 100.
double line(char const* name, schedules::run_time_problem const& problem,
            schedules::dynamic_table const& table, double took) {
  std::printf("%-16s %4d", name, problem.micro_batches);
  double bubble = 0;
  for (int const steps : {1, 10, 100}) {
    auto const run = schedules::repeated(problem, table, steps);
    auto const all = schedules::repeated(problem, steps);
    if (schedules::verdict const v = schedules::validate(all, run); !v.ok())
      std::printf(" %s\n", v.text());
    bubble = schedules::simulate(all, run).bubble_by_makespan();
    std::printf("  %.5f", bubble);
  }
  schedules::step_period const period = schedules::period_of(problem, table);
  auto const one = schedules::simulate(problem, table);
  long peak = 0, critical = 0, passed[ranks]{};
  for (int rank = 0; rank < ranks; ++rank)
    peak = std::max(peak, schedules::peak_memory(problem, table, rank));
  schedules::for_each_critical_of_period(problem, table,
                                         [&](int rank, int) { ++critical, ++passed[rank]; });
  std::printf("  %.5f  %9ld/%ld  %9ld  %5.3f  %6.1f  ", period.idle_share(one.total_busy(), ranks),
              period.time, period.steps, one.stage_local_span(),
              double(peak) / double(problem.chunks * problem.costs[0].memory.forward), took);
  for (int rank = 0; rank < ranks; ++rank)
    if (passed[rank] > 0) std::printf(" %d: %ld%%", rank, 100 * passed[rank] / critical);
  std::printf("\n");
  return bubble;
}
double line(char const* name, schedules::run_time_problem const& problem) {
  double const begin = seconds();
  auto const table = schedules::make_dynamic_table(*schedules::find_family(name), problem);
  return line(name, problem, table, seconds() - begin);
}
template <class Policy>
double searched(char const* name, schedules::run_time_problem const& problem) {
  double const begin = seconds();
  auto const table = schedules::make_dynamic_table<Policy>(problem);
  return line(name, problem, table, seconds() - begin);
}

void head(char const* what) {
  std::printf("\n%s\n%-16s %4s  %7s  %7s  %7s  %7s  %11s  %9s  %5s  %6s   %s\n", what, "schedule",
              "m", "1 step", "10", "100", "steady", "period", "span", "peak", "made s",
              "ranks on a slowest cycle");
}

}  // namespace

int main() {
  std::printf("P = %d; bubbles of the makespan of 1, 10 and 100 steps, and of the period\n", ranks);
  head("6.2B times, microseconds");
  for (char const* name : {"1f1b", "zb-h1", "zb-h2"}) line(name, large(64, 0));
  line("zb-1p", large(64, 1));
  line("searched", large(32, 2));
  double const twice = line("searched", large(64, 2));
  line("searched", large(32, 2.75));
  head("on a V, F = B = W = 1, no hops, the memory of 1F1B");
  line("zb-v", vee(32));
  double const once = line("zb-v", vee(64));
  searched<Searched<1, 1, schedules::placement::vee>>("searched", vee(64));
  std::printf("\nfigure steady_bubble_100 %.5f\n", twice);
  std::printf("figure steady_bubble_100_1p %.5f\n", once);
}
