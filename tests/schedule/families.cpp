// SPDX-License-Identifier: BSL-1.0
//
// Every published family: right for all sizes, and as good as its paper says.
#include <climits>

#include "catch.hpp"
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/appraise.hpp>

#include "proofs.hpp"
#include "reference.hpp"
#include "rendezvous.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using proofs::is_proved;
using reference::dice;
using reference::many_costs;

constexpr chunk_cost unit{1, 1, 1};

run_time_problem equal(family const& f, int ranks, int micro_batches, chunk_cost const& each,
                       long hop = 0, int v = 2) {
  int const chunks = chunks_for(f.where, ranks, f.chunks_per_rank > 0 ? f.chunks_per_rank : v);
  run_time_problem p{ranks, chunks, micro_batches, hop, {}};
  p.costs.assign(std::size_t(chunks), each);
  return p;
}
family const& named(std::string_view name) {
  family const* const f = find_family(name);
  REQUIRE(f != nullptr);
  return *f;
}

/// A table of that family with its timeline.
struct played {
  run_time_problem problem;
  dynamic_table table;
  timeline<dynamic_rows<time_span>> when;

  played(family const& f, run_time_problem p)
      : problem(std::move(p)), table(make_dynamic_table(f, problem)),
        when(simulate(problem, table)) {
    INFO(f.name << ", p " << problem.ranks << ", m " << problem.micro_batches << ": "
                << validate(problem, table).text());
    REQUIRE(validate(problem, table).ok());
    REQUIRE(when.complete);
  }
  long peak(int rank) const { return peak_memory(problem, table, rank); }
  long highest_peak() const {
    long most = 0;
    for (int rank = 0; rank < problem.ranks; ++rank) most = std::max(most, peak(rank));
    return most;
  }
  /// What every rank is idle for in the stage-local span; they all work for as long.
  long local_idle() const { return when.stage_local_span() - when.busy(0); }
};
played play(std::string_view name, int p, int m, chunk_cost const& each = unit, long hop = 0,
            int v = 2) {
  return played(named(name), equal(named(name), p, m, each, hop, v));
}

TEST_CASE("every family is right for all sizes, or says why it does not exist", "[families]") {
  for (family const& f : catalog) {
    if (f.searches) continue;  // see search.cpp
    int exist = 0;
    for (int p = 1; p <= 8; ++p)
      for (int m = 1; m <= 20; ++m)
        for (int v = 1; v <= (f.chunks_per_rank > 0 ? 1 : 4); ++v) {
          if (f.where == placement::vee && f.chunks_per_rank == 0 && v % 2 == 1) continue;
          auto const problem = equal(f, p, m, {3, 2, 4}, 1, v);
          if (char const* why = f.refuses(problem)) {
            REQUIRE(std::string_view(why).substr(0, 6) == "needs ");
            continue;
          }
          ++exist;
          auto const table = make_dynamic_table(f, problem);
          auto const found = validate(problem, table);
          INFO(f.name << ", p " << p << ", m " << m << ", v " << v << ": " << found.text());
          REQUIRE(found.ok());
          if (table.mini_batch == 0 && p <= 5 && m <= 8)
            REQUIRE(reference::is_right(problem, table));
          REQUIRE(check_rendezvous(problem, communicate(problem, table)).ok());
        }
    INFO(f.name);
    REQUIRE(exist >= 20);
  }
}

TEST_CASE("no family is faster than the floors in its memory, whatever the times", "[families]") {
  dice roll(11);
  constexpr memory_change memories[] = {{1, 0, -1}, {3, -2, -1}, {3, 1, -4}, {0, 0, 0}};
  int tried = 0;
  while (tried < 10000) {
    family const& f = catalog[std::size_t(roll(0, int(std::size(catalog)) - 1))];
    int const p = roll(1, roll(0, 9) == 0 ? 24 : 8), m = roll(1, roll(0, 9) == 0 ? 64 : 12);
    if (f.searches) continue;
    auto problem = equal(f, p, m, unit, roll(0, 2) == 0 ? 0 : roll(0, 9),
                         f.where == placement::vee ? 2 * roll(1, 2) : roll(1, 4));
    bool const is_equal = roll(0, 2) == 0, hides = roll(0, 3) == 0;
    auto const memory = memories[roll(0, 3)];
    for (chunk_cost& c : problem.costs) {
      c = {roll(0, 9), roll(0, 9), roll(0, 9), memory};
      c.bytes = roll(0, 20);
      c.hidden = hides ? roll(0, int(c.forward)) : 0;
      c.hop = roll(0, 4) == 0 ? roll(0, 20) : -1;
      c.bandwidth = roll(0, 4) == 0 ? roll(0, 3) : -1;
      if (is_equal) c = problem.costs[0];
    }
    problem.bandwidth = roll(0, 5);
    if (f.refuses(problem)) continue;
    auto const table = make_dynamic_table(f, problem);
    auto const when = simulate(problem, table);
    INFO(f.name << ", p " << p << ", m " << m << ", roll " << tried);
    REQUIRE(validate(problem, table).ok());
    REQUIRE(when.complete);
    ++tried;
    if (!f.trains) continue;
    certificate const found = certify(problem, table, when);  // in the memory of its fullest rank
    REQUIRE(when.makespan >= found.floor.makespan);
    REQUIRE(when.stage_local_span() >= found.floor.stage_local_span);
    flush_floor const any = floor_of(problem, table.where);
    REQUIRE(any.makespan <= found.floor.makespan);
    REQUIRE(any.stage_local_span <= found.floor.stage_local_span);
  }
}

TEST_CASE("closed forms of the one-chunk families", "[families]") {
  for (int p = 1; p <= 8; ++p)
    for (int m : {2 * p - 1, 2 * p, 3 * p + 1}) {
      auto const eager = play("eager-1f1b", p, m), h1 = play("zb-h1", p, m),
                 h2 = play("zb-h2", p, m);
      REQUIRE(eager.when.makespan == 3 * (m + p - 1));
      REQUIRE(h1.when.makespan == 3 * m + p - 1);
      REQUIRE(h2.when.makespan == 3 * m + p - 1);
      REQUIRE(h1.local_idle() == p - 1);
      REQUIRE(h2.local_idle() == 0);
      for (int rank = 0; rank < p; ++rank)
        REQUIRE(eager.peak(rank) == std::min(m, 2 * (p - rank) - 1));
      REQUIRE(h1.highest_peak() == std::min(m, p));
      REQUIRE(h2.highest_peak() == std::min(m, 2 * p - 1));
    }
  // The warm-up of eager 1F1B hides hops that 1F1B waits for.
  REQUIRE(play("eager-1f1b", 4, 16, {4, 4, 4}, 2).when.makespan <
          play("1f1b", 4, 16, {4, 4, 4}, 2).when.makespan);
}

TEST_CASE("closed forms of the looped families", "[families]") {
  for (int p = 1; p <= 8; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int groups = 1; groups <= 3; ++groups) {
        int const m = groups * p;
        long const idle = 3L * (p - 1);  // (P-1)T/V, in units of a chunk
        INFO("p " << p << ", v " << v << ", m " << m);
        auto const interleaved = play("interleaved", p, m, unit, 0, v),
                   grouped = play("grouped-interleaved", p, m, unit, 0, v),
                   breadth = play("looped-bfs", p, m, unit, 0, v);
        for (played const* x : {&interleaved, &grouped, &breadth})
          for (int rank = 0; rank < p; ++rank) REQUIRE(x->when.idle(rank) == idle);
        REQUIRE(interleaved.peak(0) == std::min(m * v, p * (v - 1) + 2 * p - 1));
        REQUIRE(grouped.peak(0) == p * v);
        REQUIRE(breadth.peak(0) == m * v);
      }
  for (int p = 1; p <= 8; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = 2 * p; m <= 3 * p; m += p)
        for (chunk_cost const& each : {unit, chunk_cost{3, 3, 3}}) {
          auto const split = play("interleaved-zb", p, m, each, 0, v);
          INFO("p " << p << ", v " << v << ", m " << m);
          for (int rank = 0; rank < p; ++rank) {
            REQUIRE(split.when.idle(rank) == (p - 1) * each.forward);
            REQUIRE(split.peak(rank) == p * v);
          }
        }
  // What PyTorch's table of the same name has.
  REQUIRE(play("interleaved-zb", 4, 8, unit, 0, 2).when.bubble_by_makespan() ==
          Approx(.0588).margin(5e-5));
  REQUIRE(play("interleaved-zb", 4, 12, unit, 0, 3).when.bubble_by_makespan() ==
          Approx(.0270).margin(5e-5));
  // A group may be larger than the pipeline.
  auto const large = equal_times(4, 16, unit, 0, 3);
  auto const groups_of_eight = make_dynamic_table<InterleavedZeroBubble<3, 8>>(large);
  REQUIRE(validate(large, groups_of_eight).ok());
  REQUIRE(simulate(large, groups_of_eight).makespan == 3 * 16 * 3 + 3);
  for (int rank = 0; rank < 4; ++rank) REQUIRE(peak_in_flight(groups_of_eight, rank) == 8 * 2 + 4);
  auto const problem = equal_times(4, 16, unit, 0, 3);
  REQUIRE(simulate(problem, make_dynamic_table<Interleaved<3, 8>>(problem)).makespan ==
          3 * 16 * 3 + 3 * 3);
}

/// A problem whose ranks have memory of different sizes.
struct with_rooms : run_time_problem {
  std::vector<long> rooms;
  long room(int rank) const { return rooms[std::size_t(rank)]; }
};

TEST_CASE("an adapted warm-up is never worse than 1F1B and eager 1F1B", "[families]") {
  dice roll(7);
  int better = 0, compared = 0;
  for (int i = 0; i < 400; ++i) {
    int const p = roll(1, 10), m = roll(1, 24);
    with_rooms problem{equal(named("1f1b"), p, m, unit, roll(0, 2) == 0 ? 0 : roll(0, 15)), {}};
    long most = 0;
    for (chunk_cost& c : problem.costs) {
      c = {roll(0, 20), roll(0, 20), roll(0, 20)};
      c.bytes = roll(0, 40);
      long const added = roll(1, 5), by_b = roll(-int(added), 2);
      c.memory = {added, by_b, -added - by_b};
      most = std::max(most, added);
    }
    problem.bandwidth = roll(0, 1) * roll(1, 8);
    if (roll(0, 2) > 0) problem.limit = most * roll(2, 2 * p);
    problem.rooms.assign(std::size_t(p), problem.limit);
    if (problem.limit > 0)
      for (long& room : problem.rooms) room = roll(0, 1) == 0 ? room : most * roll(2, 2 * p);
    auto const appraised = [&]<class Policy>(Policy) {
      return appraise(problem, make_dynamic_table<Policy>(problem));
    };
    auto const adapted = appraised(AdaptedOneFOneB{}), one = appraised(OneFOneB{}),
               eager = appraised(EagerOneFOneB{});
    INFO("roll " << i << ", p " << p << ", m " << m << ", limit " << problem.limit);
    if (one.found.ok() || eager.found.ok()) REQUIRE(adapted.found.ok());
    if (!adapted.found.ok()) {
      REQUIRE(adapted.found.what == fault::over_limit);
      continue;
    }
    long best = LONG_MAX;  // of the two, where it fits into memory
    for (auto const* other : {&one, &eager})
      if (other->found.ok()) best = std::min(best, other->when.makespan);
    REQUIRE(adapted.when.makespan <= best);
    compared += best < LONG_MAX;
    better += best < LONG_MAX && adapted.when.makespan < best;
  }
  INFO(better << " of " << compared);
  REQUIRE(3 * better > compared);
  for (int p = 1; p <= 8; ++p)  // nothing to adapt to
    for (int m : {p, 2 * p + 1, 4 * p})
      for (int rank = 0; rank < p; ++rank)
        REQUIRE(play("adapted-1f1b", p, m).table.row(rank) == play("1f1b", p, m).table.row(rank));
}

TEST_CASE("an appraisal says what proof, simulation and memory say", "[families]") {
  dice roll(5);
  int wrong = 0;
  for (int i = 0; i < 300; ++i) {
    family const& f = catalog[std::size_t(roll(0, int(std::size(catalog)) - 1))];
    int const p = roll(1, 6), m = roll(1, 12);
    auto problem = equal(f, p, m, {roll(0, 9), roll(0, 9), roll(0, 9)}, roll(0, 3));
    if (f.searches || f.refuses(problem)) continue;
    auto table = make_dynamic_table(f, problem);
    if (roll(0, 3) == 0) problem.limit = roll(1, p);
    if (auto& row = table.row(roll(0, p - 1)); roll(0, 2) == 0 && row.size() > 1)
      std::swap(row[std::size_t(roll(0, int(row.size()) - 1))], row.back());
    auto const found = appraise(problem, table);
    verdict const proof = validate(problem, table);
    INFO(f.name << ", p " << p << ", m " << m << ", roll " << i << ": " << proof.text());
    REQUIRE(found.found.what == proof.what);
    REQUIRE(found.found.rank == proof.rank);
    REQUIRE(found.found.position == proof.position);
    wrong += !proof.ok();
    if (!proof.ok()) continue;
    auto const when = simulate(problem, table);
    long peak = 0;
    for (int rank = 0; rank < p; ++rank) {
      peak = std::max(peak, peak_memory(problem, table, rank));
      REQUIRE(found.when.busy(rank) == when.busy(rank));
      REQUIRE(found.when.idle(rank) == when.idle(rank));
    }
    REQUIRE(found.when.complete);
    REQUIRE(found.when.makespan == when.makespan);
    REQUIRE(found.when.stage_local_span() == when.stage_local_span());
    REQUIRE(found.peak == peak);
  }
  REQUIRE(wrong > 20);
}

TEST_CASE("closed forms of the V families", "[families]") {
  for (int p = 1; p <= 10; ++p)
    for (int m : {2 * p, 3 * p + 1}) {
      INFO("p " << p << ", m " << m);
      auto const zero = play("zb-v", p, m), half = play("v-half", p, m),
                 least = play("v-min", p, m);
      REQUIRE(zero.local_idle() == 0);
      for (int rank = 0; rank < p; ++rank) REQUIRE(zero.peak(rank) == std::min(2 * m, 2 * p));
      REQUIRE(half.highest_peak() <= 2 * ((p + 2) / 2));
      REQUIRE(least.highest_peak() <= 2 * ((p + 4) / 3));
      REQUIRE(half.local_idle() <= (p <= 2 ? 0 : p % 2 == 0 ? 3 * p - 7 : 3 * p - 4));
      bool const shorter = p % 3 == 0 || (p % 3 == 2 && p <= 8);
      REQUIRE(least.local_idle() <= (p == 1 ? 0 : shorter ? 4 * p - 7 : 4 * p - 5));
    }
  for (int p = 2; p <= 10; ++p)
    for (int m = p; m < 2 * p; ++m) REQUIRE(play("zb-v", p, m).local_idle() <= 2 * p - 1 - m);
  auto const published = play("v-min", 4, 8);
  REQUIRE(published.when.bubble_by_makespan() == Approx(0.1864).margin(5e-5));
  REQUIRE(published.highest_peak() == 4);
  auto const also_published = play("v-half", 4, 8);
  REQUIRE(also_published.when.bubble_by_makespan() == Approx(0.0943).margin(5e-5));
  REQUIRE(also_published.highest_peak() == 6);
}

TEST_CASE("Chimera's groups, one after the other and doubled, where B = 2F", "[families]") {
  for (int p = 2; p <= 12; p += 2) {
    auto const timed = [&]<class Policy>(Policy, int m) {
      problem<> const question{p, p, m, 0, {{1, 1, 1}}};
      auto const table = make_dynamic_table<Policy>(question);
      REQUIRE(validate(question, table).ok());
      return std::pair{simulate(question, table), peak_in_flight(table, 0)};
    };
    INFO("p " << p);
    REQUIRE(timed(Chimera{}, p).first.makespan == p + 2 * (2 * p - 2));  // Li and Hoefler, 2021
    for (int groups : {1, 2, 3}) {
      int const m = 2 * p * groups;
      auto const [plain, peak] = timed(Chimera{}, m);
      auto const [doubled, peak_doubled] = timed(ChimeraDoubled{}, m);
      REQUIRE(2 * doubled.idle(0) == 3 * (p - 2));
      REQUIRE(doubled.makespan <= plain.makespan);
      REQUIRE(peak_doubled == 2 * peak);
    }
    for (int m = 1; m <= 3 * p + 3; ++m) timed(ChimeraDoubled{}, m);
  }
}

TEST_CASE("closed forms of the families that fill each other's bubbles", "[families]") {
  for (int p = 2; p <= 16; p += 2)
    for (int units = 1; units <= 4; units *= 2) {
      int const m = units * p;
      INFO("p " << p << ", m " << m);
      auto const chimera = play("chimera", p, m, {2, 1, 1});
      REQUIRE(chimera.when.bubble_by_makespan() ==
              Approx(double(p - 2) / (2 * m + p - 2)).margin(1e-12));
      for (int rank = 0; rank < p; ++rank) {
        REQUIRE(chimera.peak(rank) >= p / 2 + 1);
        REQUIRE(chimera.peak(rank) <= p);
      }
      for (int waves : {1, 2}) {
        auto const hanayo = play("hanayo", p, m, {2, 1, 1}, 0, 2 * waves);
        REQUIRE(hanayo.when.idle(0) == 4L * (p - 1));
        REQUIRE(hanayo.highest_peak() <= 2 * waves * p);
      }
      for (chunk_cost const& each :
           {unit, chunk_cost{3, 2, 4}, chunk_cost{2, 2, 1}, chunk_cost{5, 4, 4}}) {
        long const both = each.backward_input + each.backward_weight;
        auto const dual = play("dualpipe", p, 2 * m, each);
        REQUIRE(dual.local_idle() <=
                (p / 2 - 1) * (each.forward + 2 * both - 3 * each.backward_weight));
        REQUIRE(dual.highest_peak() == p + 1);
        auto const dual_v = play("dualpipe-v", p / 2, 2 * m, each);
        REQUIRE(dual_v.local_idle() <=
                (p / 2 - 1) * (each.forward + 2 * both - 3 * each.backward_weight));
        REQUIRE(dual_v.highest_peak() == p + 1);
        // Less than the authors' formula by a B for each of the p/2 - 1.
        long const most =
            each.backward_input > each.backward_weight ? each.backward_input : each.backward_weight;
        if (most > each.forward) continue;
        long const idle = (p / 2 - 1) * (each.forward + both - 2 * each.backward_weight);
        for (int rank = 0; rank < p; ++rank) REQUIRE(dual.when.idle(rank) == idle);
        for (int rank = 0; rank < p / 2; ++rank) REQUIRE(dual_v.when.idle(rank) == idle);
      }
    }
  REQUIRE(named("chimera").refuses(equal(named("chimera"), 3, 6, unit)) != nullptr);
  REQUIRE(named("dualpipe").refuses(equal(named("dualpipe"), 4, 6, unit)) != nullptr);
  REQUIRE(named("dualpipe").refuses(equal(named("dualpipe"), 4, 9, unit)) != nullptr);
  REQUIRE(named("dualpipe-v").refuses(equal(named("dualpipe-v"), 4, 7, unit)) != nullptr);
}

TEST_CASE("without a flush the pipeline stays full, and old weights are kept", "[families]") {
  for (int p = 1; p <= 6; ++p) {
    int const m = 4 * p;
    INFO("p " << p);
    auto const dream = play("pipedream", p, m), buffered = play("pipedream-2bw", p, m);
    for (int rank = 0; rank < p; ++rank) {
      REQUIRE(dream.peak(rank) == p - rank);
      REQUIRE(peak_versions(dream.table, rank) == p - rank);
      REQUIRE(peak_versions(buffered.table, rank) <= 2);
      REQUIRE(dream.when.idle(rank) == 3L * (p - 1));  // once, not in every mini-batch
    }
    auto const problem = equal_times(p, m);
    auto const one_copy = make_dynamic_table<PACI<1>>(problem);
    REQUIRE(validate(problem, one_copy).ok());
    int drift = 0;
    for (int rank = 0; rank < p; ++rank) {
      std::vector<int> read(static_cast<std::size_t>(m));
      for (action const& a : one_copy.row(rank)) {
        if (a.kind == action_kind::forward) read[std::size_t(a.micro_batch)] = a.version;
        if (a.kind == action_kind::backward)
          drift = std::max(drift, a.version - read[std::size_t(a.micro_batch)]);
      }
    }
    REQUIRE(drift == p - 1);  // attained
    auto unbounded = one_copy;
    unbounded.drift = p - 2;
    if (p > 1) REQUIRE(validate(problem, unbounded).what == fault::wrong_version);
    auto const synchronised = make_dynamic_table<PipeDream<true>>(problem);
    REQUIRE(validate(problem, synchronised).ok());
    for (int rank = 0; rank < p; ++rank) {
      REQUIRE(peak_versions(synchronised, rank) <= p);
      for (action const& a : synchronised.row(rank))
        if (a.kind == action_kind::forward)
          REQUIRE(a.version == std::max(0, a.micro_batch - (p - 1)));
    }
  }
}

TEST_CASE("the published bubbles of hand-made schedules, in all four digits", "[families]") {
  struct row {
    int ranks, micro_batches, chunks;
    chunk_cost stage;
    long hop;
    double one, interleaved, h1, h2;
  };
  // Qi et al., Zero Bubble Pipeline Parallelism, 2024, tables 4 and 5: microseconds; ZB-H2 by the
  // stage-local span
  row const rows[] = {{8, 24, 3, {18522, 18086, 9337}, 601, .2431, .1055, .1585, .1083},
                      {8, 32, 3, {18513, 18086, 9331}, 626, .1985, .0818, .1242, .0837},
                      {8, 64, 3, {18546, 18097, 9321}, 762, .1240, .0443, .0674, .0444},
                      {8, 24, 4, {29718, 29444, 19927}, 527, .2347, .0808, .1323, .0698},
                      {8, 32, 4, {29802, 29428, 19530}, 577, .1898, .0628, .1045, .0559},
                      {8, 64, 4, {29935, 29621, 19388}, 535, .1091, .0320, .0554, .0294}};
  for (row const& r : rows) {
    INFO("m " << r.micro_batches << ", F " << r.stage.forward);
    REQUIRE(play("1f1b", r.ranks, r.micro_batches, r.stage, r.hop).when.bubble_by_makespan() ==
            Approx(r.one).margin(5.01e-5));
    REQUIRE(play("zb-h1", r.ranks, r.micro_batches, r.stage, r.hop).when.bubble_by_makespan() ==
            Approx(r.h1).margin(5.01e-5));
    REQUIRE(
        play("zb-h2", r.ranks, r.micro_batches, r.stage, r.hop).when.bubble_by_stage_local_span() ==
        Approx(r.h2).margin(5.01e-5));
    // Interleaved: the paper's makespan and ours differ by no more than the hops of one way through
    // the ranks.
    chunk_cost const chunk{r.stage.forward / r.chunks, r.stage.backward_input / r.chunks,
                           r.stage.backward_weight / r.chunks};
    auto const interleaved = play("interleaved", r.ranks, r.micro_batches, chunk, r.hop, r.chunks);
    double const work = double(interleaved.when.busy(0)), published = work / (1 - r.interleaved);
    REQUIRE(double(interleaved.when.makespan) - published <=
            double(r.ranks * r.hop) + 1e-4 * published);
    REQUIRE(published - double(interleaved.when.makespan) <=
            double(r.ranks * r.hop) + 1e-4 * published);
  }
}

// Proofs inside the compiler, without flags, of every family.
static_assert(is_proved<GPipe>() && is_proved<OneFOneB>() && is_proved<EagerOneFOneB>() &&
              is_proved<ForwardOnly>());
static_assert(is_proved<ZeroBubbleH1>() && is_proved<ZeroBubbleH2>() && is_proved<ZeroBubbleV>());
static_assert(is_proved<Interleaved<2>>() && is_proved<GroupedInterleaved<2>>() &&
              is_proved<LoopedBFS<2>>() && is_proved<InterleavedZeroBubble<2>>() &&
              is_proved<InterleavedZeroBubble<3>, 4, 10>());
static_assert(is_proved<AdaptedOneFOneB>() && is_proved<AdaptedOneFOneB, 16, 64>());
static_assert(is_proved<VHalf>() && is_proved<VMin>() && is_proved<Hanayo<>>() &&
              is_proved<Chimera>() && is_proved<ChimeraDoubled>());
static_assert(is_proved<DualPipe>() && is_proved<DualPipeV>() && is_proved<Paired<DualPipe>>() &&
              is_proved<Paired<DualPipeV>>() && is_proved<Paired<EagerOneFOneB>>() &&
              is_proved<Paired<Interleaved<2>>>());
static_assert(is_proved<PipeDream<>>() && is_proved<PipeDream2BW<>>() && is_proved<PACI<>>());

}  // namespace
