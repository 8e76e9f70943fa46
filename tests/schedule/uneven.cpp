// SPDX-License-Identifier: BSL-1.0
//
// Micro-batches of unequal work: the times of their actions and transfers, and the bubble that
// their lengths and their order leave to a schedule.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "catch.hpp"

#include <pipe/data/compositions.hpp>
#include <pipe/plan/epoch_times.hpp>
#include <pipe/schedule.hpp>
#include <pipe/schedule/uneven.hpp>

namespace {

using namespace pp;
using namespace pp::schedules;
using lengths_of_batch = std::vector<std::size_t>;

constexpr int context = 2048;
/// A position of an attention of width 768 takes 12 rows of that width, and 2 of each key.
constexpr long row = 12 * 768, key = 1;

/// The problem of micro-batches of one sample of the context.
template <int Ranks, int MicroBatches, int Chunks>
uneven_problem<problem<>> full_samples() {
  auto const of = [](long time) {
    return problem<>{Ranks, Chunks, MicroBatches, 0, same_cost{{time, time, time}}};
  };
  return {of(context * (row + key * context)), of(key * context * context), of(0), {}};
}

/// Lengths 128 to 2,048, each half as frequent as the one before, but the last.
std::size_t draw_length(std::mt19937& random) {
  int k = 0;
  while (k < 4 && random() % 2 == 0) ++k;
  return std::size_t(128) << k;
}
/// The shortest at both ends.
lengths_of_batch shortest_at_ends(lengths_of_batch const& came) {
  std::vector<int> const lengths(came.begin(), came.end());
  std::vector<std::size_t> samples(came.size());
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<int> counts(came.size(), 1);
  detail::put_shortest_at_ends(samples, counts, lengths, context, came.size());
  lengths_of_batch ordered;
  for (std::size_t const s : samples) ordered.push_back(came[s]);
  return ordered;
}

/// The mean bubbles of 200 mini-batches.
struct bubbles {
  double equal, as_they_come, longest_first, in_turn, shortest_at_ends, equal_rows;
};
template <class Schedule, int Ranks, int MicroBatches>
bubbles measure() {
  constexpr int chunks = chunks_for(Schedule::where, Ranks, Schedule::chunks_per_rank);
  constexpr problem<> even{Ranks, chunks, MicroBatches, 0, same_cost{{1, 1, 1}}};
  auto const table = make_table<Schedule, Ranks, MicroBatches>(even);
  auto full = full_samples<Ranks, MicroBatches, chunks>();
  auto const bubble = [&](lengths_of_batch const& lengths, bool fills_rows = false) {
    full.loads.clear();
    for (std::size_t const n : lengths) {
      double const share = double(n) / context;
      full.loads.push_back({fills_rows ? 1 : share, fills_rows ? share : share * share});
    }
    return simulate(full, table).bubble_by_makespan();
  };
  std::mt19937 random(11);
  bubbles sum{};
  constexpr int batches = 200;
  for (int n = 0; n < batches; ++n) {
    lengths_of_batch came(MicroBatches);
    for (std::size_t& length : came) length = draw_length(random);
    // The draws of 300 random orders, which the table's bubbles were once compared with.
    lengths_of_batch shuffled = came, rising = came, turns;
    for (int i = 0; i < 300; ++i) std::shuffle(shuffled.begin(), shuffled.end(), random);
    std::sort(rising.begin(), rising.end());
    for (std::size_t i = 0, j = MicroBatches; i < j;) {
      turns.push_back(rising[--j]);
      if (i < j) turns.push_back(rising[i++]);
    }
    sum.equal += bubble(lengths_of_batch(MicroBatches, 512)) / batches;
    sum.as_they_come += bubble(came) / batches;
    sum.longest_first += bubble({rising.rbegin(), rising.rend()}) / batches;
    sum.in_turn += bubble(turns) / batches;
    sum.shortest_at_ends += bubble(shortest_at_ends(came)) / batches;
    sum.equal_rows += bubble(came, true) / batches;
  }
  return sum;
}

void check(bubbles const& found, bubbles const& expected) {
  auto const near = [](double x) { return Approx(x).margin(.001); };
  CHECK(found.equal == near(expected.equal));
  CHECK(found.as_they_come == near(expected.as_they_come));
  CHECK(found.longest_first == near(expected.longest_first));
  CHECK(found.in_turn == near(expected.in_turn));
  CHECK(found.shortest_at_ends == near(expected.shortest_at_ends));
  CHECK(found.equal_rows == near(expected.equal_rows));
}

}  // namespace

TEST_CASE("uneven micro-batches leave a schedule the bubbles of the table", "[schedule]") {
  check(measure<OneFOneB, 4, 8>(), {.273, .552, .511, .562, .479, .288});
  check(measure<OneFOneB, 4, 16>(), {.158, .558, .439, .539, .413, .184});
  check(measure<OneFOneB, 8, 16>(), {.304, .702, .640, .683, .616, .332});
  check(measure<ZeroBubbleH1, 4, 16>(), {.059, .417, .304, .396, .260, .068});
}

TEST_CASE("an epoch by length or by tokens leaves 1F1B nearly the bubble of equal samples",
          "[schedule]") {
  constexpr problem<> even{4, 4, 16, 0, same_cost{{1, 1, 1}}};
  auto const table = make_table<OneFOneB, 4, 16>(even);
  std::mt19937 random(11);
  std::vector<int> lengths(3200);
  for (int& n : lengths) n = int(draw_length(random));
  constexpr double equal = 3. / 19;  // (P - 1) / (M + P - 1)
  for (int const each : {1, 4}) {
    detail::composition_room const room{context, each, 16, 1, {each * context, 8 * each, 8}};
    auto const bubble = [&](detail::composition way) {
      auto const found =
          detail::simulate_epoch(full_samples<4, 16, 4>(), table, lengths, room, way);
      CHECK(found.bubble(4) == Approx(1 - found.busy / (4 * found.makespan)));
      return found.bubble(4);
    };
    using enum detail::composition;
    CHECK(bubble(as_they_come) > .45);
    CHECK(bubble(by_length) < equal + .03);
    CHECK(bubble(by_tokens) < equal + .03);
    CHECK(bubble(packed) < equal + .03);
  }
}

TEST_CASE("micro-batches keep their samples, and rise and fall in each accumulation",
          "[schedule]") {
  std::mt19937 random(5);
  std::vector<int> lengths(1000);
  for (int& n : lengths) n = int(draw_length(random));
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  detail::measured_rows const rows[] = {{lengths, context, {context, 8, 8}}};
  auto const counts = detail::fill_in_order(order, rows);
  std::vector<std::size_t> moved = order;
  auto moved_counts = counts;
  detail::put_shortest_at_ends(moved, moved_counts, lengths, context, 8);
  auto const micro_batches_of = [](std::vector<int> const& of,
                                   std::vector<std::size_t> const& samples) {
    std::vector<std::vector<std::size_t>> micro_batches;
    auto first = samples.begin();
    for (int const count : of) micro_batches.emplace_back(first, first + count), first += count;
    return micro_batches;
  };
  auto const before = micro_batches_of(counts, order),
             after = micro_batches_of(moved_counts, moved);
  REQUIRE(after.size() == before.size());
  for (std::size_t from = 0; from < after.size(); from += 8) {
    auto const end = std::min(after.size(), from + 8);
    std::vector<long> work;
    for (std::size_t i = from; i < end; ++i) {
      work.push_back(0);
      for (std::size_t const s : after[i]) work.back() += long(lengths[s]) * (context + lengths[s]);
    }
    auto const top = std::ranges::max_element(work);
    CHECK(std::ranges::is_sorted(work.begin(), top));
    CHECK(std::ranges::is_sorted(top, work.end(), std::greater<>()));
    std::vector expected(before.begin() + long(from), before.begin() + long(end)),
        there(after.begin() + long(from), after.begin() + long(end));
    std::ranges::sort(expected);
    std::ranges::sort(there);
    CHECK(expected == there);
  }
}

TEST_CASE("full micro-batches take the times of the problem, others parts of them", "[schedule]") {
  chunk_cost cost{1000, 2000, 1500};
  cost.bytes = 800;
  cost.hidden = 400;
  cost.recompute = 700;
  problem<> const full{2, 2, 4, 30, same_cost{cost}, 4};
  auto const part = [&](long forward, long backward, long weight, long recompute) {
    chunk_cost of{forward, backward, weight};
    of.recompute = recompute;
    return problem<>{2, 2, 4, 0, same_cost{of}};
  };
  uneven_problem<problem<>> const uneven{
      full, part(100, 400, 0, 100), part(50, 50, 50, 50), {{1, 1}, {.5, .25}, {0, 0}, {2, 4}}};
  using enum action_kind;
  for (action_kind const kind : {forward, backward, backward_input, backward_weight, recompute})
    CHECK(uneven.time({kind, 1, 0}) == full.time({kind, 1, 0}));
  CHECK(uneven.time_of_pair({forward, 0, 0}, {backward, 0, 0}) ==
        full.time_of_pair({forward, 0, 0}, {backward, 0, 0}));
  CHECK(uneven.hop_time(0, 1, 0, 0) == full.hop_time(0, 1, 0));
  CHECK(uneven.time({forward, 1, 1}) == 50 + 425 + 25);
  CHECK(uneven.time({backward_input, 1, 1}) == 50 + 775 + 100);
  CHECK(uneven.time({backward_weight, 1, 1}) == 50 + 725);
  CHECK(uneven.time({recompute, 1, 1}) == 50 + 275 + 25);
  CHECK(uneven.time({forward, 1, 3}) == 50 + 1700 + 400);
  CHECK(uneven.time({backward, 1, 2}) == 0);
  CHECK(uneven.time_of_pair({forward, 0, 1}, {backward, 0, 1}) == 500 + 1700 - 200);
  CHECK(uneven.hop_time(0, 1, 0, 1) == 30 + 100);
  CHECK(uneven.hop_time(0, 1, 0, 2) == 30);
  CHECK(uneven.hop_time(1, 1, 0, 1) == 0);
  CHECK(uneven.time({forward, 1, 5}) == uneven.time({forward, 1, 1}));
  // The simulation asks for the hop of the micro-batch.
  detail::dynamic_table table(2);
  for (int const rank : {0, 1})
    for (int const mb : {1, 2}) table.push(rank, {forward, rank, mb});
  table.trains = false;
  uneven_problem<problem<>> two = uneven;
  two.micro_batches = 4;
  auto const when = simulate(two, table);
  CHECK(when.spans.at(1, 0).start == 500 + 130);
  CHECK(when.spans.at(1, 1).start == 500 + 130 + 500);
}

TEST_CASE("a table is simulated with micro-batches of unequal work", "[schedule]") {
  // [uneven]
  problem<> const full = equal_times(4, 3, {100, 100, 100}),  // of full micro-batches
      scores = equal_times(4, 3, {20, 40, 0}), nothing = equal_times(4, 3, {0, 0, 0});
  auto const table = make_table<OneFOneB, 4, 3>(full);
  uneven_problem<problem<>> const uneven{full, scores, nothing, {{.25, .0625}, {1, 1}, {.5, .25}}};
  double const bubble = simulate(uneven, table).bubble_by_makespan();
  // [/uneven]
  CHECK(bubble > simulate(full, table).bubble_by_makespan());
}
