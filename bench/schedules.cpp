// SPDX-License-Identifier: BSL-1.0
//
// The library's schedules beside the published ones, and what it takes to make, prove and simulate
// a large one.
//
// Published: Qi et al., Zero Bubble Pipeline Parallelism, 2024, on eight devices: integer
// microseconds; memory F adds 34h + 5as per micro-batch, W gives back 32h, B the rest (s = 1024).
// Bubbles are of the stage-local span for ZB-H2, ZB-1p and ZB-2p, of the makespan for the others.
// On a V every action takes one unit: the best that is known at each peak, and the greedy V-Min and
// V-Half of Qi et al., Pipeline Parallelism with Controllable Memory, 2024.
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/appraise.hpp>
#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/validate.hpp>

using namespace pp;
using namespace pp::schedules;

namespace {

struct published {
  char const* model;
  long heads, width;
  int chunks, micro_batches;
  chunk_cost stage;
  long hop;
  double one, interleaved, h1, h2, one_p, two_p, best;
};
constexpr int ranks = 8;
constexpr published rows[] = {{"1.5B",
                               24,
                               2304,
                               3,
                               24,
                               {18522, 18086, 9337},
                               601,
                               .2431,
                               .1055,
                               .1585,
                               .1083,
                               .1585,
                               .0433,
                               .0433},
                              {"1.5B",
                               24,
                               2304,
                               3,
                               32,
                               {18513, 18086, 9331},
                               626,
                               .1985,
                               .0818,
                               .1242,
                               .0837,
                               .1242,
                               .0039,
                               .0017},
                              {"1.5B",
                               24,
                               2304,
                               3,
                               64,
                               {18546, 18097, 9321},
                               762,
                               .1240,
                               .0443,
                               .0674,
                               .0444,
                               .0674,
                               .0026,
                               .0011},
                              {"6.2B",
                               32,
                               4096,
                               4,
                               24,
                               {29718, 29444, 19927},
                               527,
                               .2347,
                               .0808,
                               .1323,
                               .0698,
                               .1323,
                               .0029,
                               .0012},
                              {"6.2B",
                               32,
                               4096,
                               4,
                               32,
                               {29802, 29428, 19530},
                               577,
                               .1898,
                               .0628,
                               .1045,
                               .0559,
                               .1045,
                               .0022,
                               .0009},
                              {"6.2B",
                               32,
                               4096,
                               4,
                               64,
                               {29935, 29621, 19388},
                               535,
                               .1091,
                               .0320,
                               .0554,
                               .0294,
                               .0554,
                               .0010,
                               .0004}};

/// Times are in microseconds, divided by the chunks of a rank.
run_time_problem question(published const& r, int chunks_per_rank, double limit) {
  long const added = 34 * r.width + 5 * r.heads * 1024, by_w = 32 * r.width;
  run_time_problem problem{
      ranks, ranks * chunks_per_rank, r.micro_batches, r.hop * chunks_per_rank, {}};
  chunk_cost chunk = r.stage;
  chunk.memory = {added, by_w - added, -by_w};
  problem.costs.assign(std::size_t(problem.chunks), chunk);
  problem.limit = long(limit * double(ranks * added));
  return problem;
}

struct bubbles {
  double makespan, span;
  long makespan_time;
};
bubbles of(char const* name, run_time_problem const& problem) {
  auto const table = make_dynamic_table(*find_family(name), problem);
  if (!validate(problem, table).ok())
    std::printf("%s: %s\n", name, validate(problem, table).text());
  auto const when = simulate(problem, table);
  return {when.bubble_by_makespan(), when.bubble_by_stage_local_span(), when.makespan};
}

/// By how much the makespan of interleaved 1F1B is above the published one, in hops: at least and
/// at most, since bubbles are published in four digits.
std::pair<double, double> hops_beyond(published const& r) {
  run_time_problem const problem = question(r, r.chunks, 0);
  double const ours = double(of("interleaved", problem).makespan_time), rounding = .00005;
  double const work = double(r.micro_batches *
                             (r.stage.forward + r.stage.backward_input + r.stage.backward_weight)) *
                      r.chunks;
  auto const hops = [&](double theirs) {
    return (ours - work / (1 - theirs)) / double(problem.hop);
  };
  return {hops(r.interleaved + rounding), hops(r.interleaved - rounding)};
}

/// How long the ranks of a V wait at most, between their first and their last action, where every
/// action takes one unit.
long idle_on_a_vee(int p, int m, int chunks) {
  run_time_problem problem{p, 2 * p, m, 0, std::vector<chunk_cost>(std::size_t(2 * p))};
  problem.limit = chunks;
  auto const table = make_dynamic_table<Searched<0, 1, placement::vee>>(problem);
  if (!validate(problem, table).ok())
    std::printf("searched: %s\n", validate(problem, table).text());
  return simulate(problem, table).stage_local_span() - 6 * m;
}

/// User seconds and kilobytes for a table of a thousand ranks, in a process of its own.
std::pair<double, long> cost_of_large(char const* name) {
  std::fflush(stdout);
  pid_t const child = fork();
  if (child == 0) {
    family const& f = *find_family(name);
    int const p = 1024, chunks = p * (f.chunks_per_rank == 1 ? 1 : 2);
    run_time_problem const large{
        p, chunks, 4096, 1, std::vector<chunk_cost>(std::size_t(chunks), chunk_cost{10, 9, 8})};
    appraisal const found = appraise(large, make_dynamic_table(f, large));
    _exit(found.found.ok() && found.when.makespan >= floor_of(large, f.where).makespan ? 0 : 1);
  }
  int status = 0;
  rusage used{};
  if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0)
    std::printf("  %s: failed\n", name);
  return {double(used.ru_utime.tv_sec) + 1e-6 * double(used.ru_utime.tv_usec), used.ru_maxrss};
}

}  // namespace

int main() {
  std::printf(
      "ours / published, bubbles\n%-6s %3s  %-13s  %-13s  %-13s  %-13s  %-13s  %-13s  %-13s\n",
      "model", "m", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "searched 2p");
  double worst = -1;
  for (published const& r : rows) {
    auto const straight = question(r, 1, 0);
    std::printf("%-6s %3d", r.model, r.micro_batches);
    auto const compare = [&](double ours, double theirs) {
      std::printf("  %.4f/%.4f", ours, theirs);
    };
    compare(of("1f1b", straight).makespan, r.one);
    compare(of("interleaved", question(r, r.chunks, 0)).makespan, r.interleaved);
    compare(of("zb-h1", straight).makespan, r.h1);
    compare(of("zb-h2", straight).span, r.h2);
    compare(of("zb-1p", straight).span, r.one_p);
    compare(of("zb-2p", straight).span, r.two_p);
    double const found = of("searched", question(r, 1, 2)).span;
    compare(found, r.best);
    worst = std::max(worst, found - r.best);
    std::printf("\n");
  }
  std::printf(
      "\ninterleaved: P = %d hops more than published in every row, within the rounding of the "
      "published digits: 2PV-2 "
      "hops beyond the "
      "makespan without hops, where the published have 2PV-2-P, and do not say which hops are "
      "free\n  hops more: ",
      ranks);
  for (published const& r : rows) {
    auto const [least, most] = hops_beyond(r);
    std::printf("  %.1f to %.1f", least, most);
  }

  std::printf(
      "\n\n6.2B, m = 32: bubble of the span against the memory limit (of P), ours / published\n");
  constexpr double curve[][2] = {{1, .1045}, {1.25, .0645},  {1.5, .0363}, {1.75, .0138},
                                 {2, .0022}, {2.625, .0003}, {2.75, 0}};
  for (auto const& [limit, theirs] : curve)
    std::printf("  %.3f  %.4f / %.4f\n", limit, of("searched", question(rows[4], 1, limit)).span,
                theirs);

  struct trade {
    int chunks;
    long theirs;
  };
  constexpr trade four[] = {{4, 11}, {5, 8}, {6, 5}, {7, 3}, {8, 0}};
  constexpr trade eight[] = {{8, 25}, {10, 17}, {12, 11}, {14, 6}, {16, 0}};
  auto const trade_off = [](int p, int m, auto const& points) {
    std::printf(
        "\non a V, F = B = W = 1, P = %d, M = %d: idle time against chunks of memory, ours / "
        "reference\n ",
        p, m);
    for (auto const& [chunks, theirs] : points)
      std::printf("  %d: %ld/%ld", chunks, idle_on_a_vee(p, m, chunks), theirs);
    std::printf("\n");
  };
  trade_off(4, 8, four);
  trade_off(8, 16, eight);
  run_time_problem const vee{4, 8, 8, 0, std::vector<chunk_cost>(8)};
  std::printf(
      "  bubble of the makespan, P = 4, M = 8, ours / published: v-min %.4f/.1864, v-half "
      "%.4f/.0943\n",
      of("v-min", vee).makespan, of("v-half", vee).makespan);

  std::printf(
      "\nP = 1024, M = 4096: made, proved and simulated, seconds of one core (user) and most "
      "memory\n");
  double of_h1 = 0;
  for (char const* name : {"gpipe", "1f1b", "adapted-1f1b", "zb-h1", "zb-h2", "interleaved",
                           "interleaved-zb", "zb-v", "v-min", "v-half"}) {
    auto const [user, kib] = cost_of_large(name);
    std::printf("  %-15s %5.2f s  %6.0f MB\n", name, user, double(kib) / 1000);
    if (std::string_view(name) == "zb-h1") of_h1 = user;
  }
  std::printf("figure searched_2p_over_best_known %+.4f\n", worst);
  std::printf("figure schedule_large_s %.2f\n", of_h1);
}
