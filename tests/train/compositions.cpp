// SPDX-License-Identifier: BSL-1.0
//
// What the ways of composing mini-batches cost in a pipeline: the figures of the page about texts
// of different lengths, from the simulator, for documents of drawn lengths.
#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <pipe/data/length_order.hpp>
#include <pipe/schedule.hpp>

using namespace pp;
using namespace pp::schedules;

namespace {

constexpr int context = 2048, width = 768, each = 2, ranks = 4, micro_batches = 16;
constexpr detail::row_room room{each * context, 32 * each, 8};

/// A pipeline whose micro-batches take unequal times: those of their segments' rows and, as
/// attention does, of the squares of their lengths.
struct uneven : problem<> {
  std::vector<long> times;
  long time(action const& a) const { return times[std::size_t(a.micro_batch)]; }
  long time_of_pair(action const& f, action const& b) const { return time(f) + time(b); }
};
long time_of(long length) { return length * (12 * width + length) / 1000; }

/// Mini-batches of an epoch: the times of each one's micro-batches.
using epoch = std::vector<std::vector<long>>;

std::vector<int> drawn_lengths() {
  std::mt19937 random(11);
  std::vector<int> all;
  for (int i = 0; i < 16384; ++i) {
    int most = 128;
    while (most < context && random() % 2 == 0) most *= 2;
    all.push_back(most / 2 + 1 + int(random() % unsigned(most / 2)));
  }
  return all;
}
/// Micro-batches of counts[0], counts[1], ... samples of an order, in mini-batches.
epoch compose(std::span<std::size_t const> order, std::span<int const> counts,
              std::span<int const> lengths) {
  epoch all;
  std::size_t at = 0;
  for (std::size_t mb = 0; mb < counts.size(); ++mb) {
    if (mb % micro_batches == 0) all.emplace_back();
    long sum = 0;
    for (int i = 0; i < counts[mb]; ++i) sum += time_of(room.rows_of(lengths[order[at++]]));
    all.back().push_back(sum);
  }
  CHECK(at == order.size());
  return all;
}

struct cost {
  double bubble = 0;  // mean of all mini-batches
  double time = 0;    // of the epoch, over that of padded samples
  std::size_t steps = 0;
};
cost cost_of(epoch const& all) {
  constexpr problem<> even{ranks, ranks, micro_batches, 0, same_cost{{1, 1, 1}}};
  static constexpr auto table = make_table<OneFOneB, ranks, micro_batches>(even);
  cost found;
  double span = 0;
  for (std::vector<long> times : all) {
    times.resize(micro_batches, 0);  // of the last mini-batch
    auto const of = simulate(uneven{even, times}, table);
    found.bubble += of.bubble_by_makespan() / double(all.size());
    span += double(of.makespan);
  }
  epoch const padded(16384 / (each * micro_batches),
                     std::vector<long>(micro_batches, each * time_of(context)));
  found.steps = all.size();
  static double const of_padded = [&] {
    return double(simulate(uneven{even, padded[0]}, table).makespan) * double(padded.size());
  }();
  found.time = span / of_padded;
  return found;
}

}  // namespace

TEST_CASE("what compositions cost in a pipeline is what the page says") {
  std::vector<int> const lengths = drawn_lengths();
  std::vector<std::size_t> const shuffled = detail::shuffled_order(lengths.size(), 1, 0);
  std::vector<int> const pairs(lengths.size() / each, each);
  auto const check = [](cost const& found, double bubble, double time, std::size_t steps) {
    CHECK(found.bubble == Approx(bubble).margin(.0006));
    CHECK(found.time == Approx(time).margin(.0006));
    CHECK(found.steps == steps);
  };
  std::vector<long> const longest(micro_batches, each * time_of(context));
  check(cost_of(epoch(lengths.size() / (each * micro_batches), longest)), .158, 1, 512);
  check(cost_of(compose(shuffled, pairs, lengths)), .512, .223, 512);
  std::vector<std::size_t> order = shuffled;
  detail::order_by_length(order, lengths, context, {each * micro_batches, each, micro_batches});
  check(cost_of(compose(order, pairs, lengths)), .157, .126, 512);
  std::vector<detail::measured_rows> const inputs{{lengths, context, room}};
  auto const check_filled = [&](std::vector<int>&& counts, double bubble, double time,
                                std::size_t steps) {
    detail::put_shortest_at_ends(order, counts, lengths, context, micro_batches);
    check(cost_of(compose(order, counts, lengths)), bubble, time, steps);
  };
  order = shuffled;
  check_filled(detail::fill_in_order(order, inputs), .153, .126, 81);
  order = shuffled;
  std::vector<int> counts = detail::pack_decreasing(order, inputs);
  detail::shuffle_parts(order, counts, 1, 0);
  check_filled(std::move(counts), .161, .127, 74);
}
TEST_CASE("packing needs room for about twice as many samples as a micro-batch has") {
  std::vector<int> const lengths = drawn_lengths();
  std::size_t const expected[] = {97, 77, 74};
  for (int const most : {8, 16, 32}) {  // 14 samples fill the rows of a micro-batch, in the mean
    std::vector<std::size_t> order = detail::shuffled_order(lengths.size(), 1, 0);
    std::vector<detail::measured_rows> const inputs{
        {lengths, context, {room.rows, most * each, room.block}}};
    auto const counts = detail::pack_decreasing(order, inputs);
    CHECK((counts.size() + micro_batches - 1) / micro_batches == expected[most == 8    ? 0
                                                                          : most == 16 ? 1
                                                                                       : 2]);
  }
}
