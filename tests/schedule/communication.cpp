// SPDX-License-Identifier: BSL-1.0
//
// Derived transfers: complete, in order on every pair of ranks, and never locked, whatever right
// table they come from.
#include "catch.hpp"
#include <deque>
#include <pipe/schedule/boundary_slots.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/communication.hpp>

#include "reference.hpp"
#include "rendezvous.hpp"
#include "same_slots.hpp"

namespace {

using namespace pp;
using namespace pp::schedules;
using namespace pp::detail;
using reference::dice;
using enum pp::schedules::action_kind;

/// A second opinion on rendezvous: as long as any two ranks can meet, let them.
bool reaches_the_end(dynamic_rows<rank_instruction> const& steps) {
  std::vector<std::size_t> at(steps.items.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < at.size(); ++rank) {
      if (at[rank] == steps.items[rank].size()) continue;
      rank_instruction const mine = steps.items[rank][at[rank]];
      if (mine.kind == instruction_kind::compute) {
        ++at[rank], moved = true;
        continue;
      }
      auto const peer = std::size_t(mine.peer);
      if (at[peer] == steps.items[peer].size()) continue;
      rank_instruction const theirs = steps.items[peer][at[peer]];
      if (mine.kind == instruction_kind::send && theirs.kind == instruction_kind::receive &&
          theirs.peer == int(rank) && theirs.of == mine.of)
        ++at[rank], ++at[peer], moved = true;
    }
  }
  for (std::size_t rank = 0; rank < at.size(); ++rank)
    if (at[rank] < steps.items[rank].size()) return false;
  return true;
}

void check_laws(reference::many_costs const& problem, dynamic_table const& table) {
  auto const steps = communicate(problem, table);
  REQUIRE(check_rendezvous(problem, steps).ok());
  REQUIRE(reaches_the_end(steps));
  std::map<std::pair<int, int>, std::deque<action>>
      channels;  // sent on each directed pair, in order
  for (int rank = 0; rank < problem.ranks; ++rank) {
    std::vector<action> computed;
    std::set<std::tuple<bool, int, int>> received;  // forward, chunk, micro-batch
    for (int i = 0; i < steps.size(rank); ++i) {
      rank_instruction const s = steps.at(rank, i);
      if (s.kind == instruction_kind::receive)
        received.insert({s.of.kind == forward, s.of.chunk, s.of.micro_batch});
      if (s.kind == instruction_kind::send) {
        REQUIRE(!computed.empty());
        // As soon as it is made; of a pair, when both are.
        auto made = computed.end() - 1;
        if (made != computed.begin() && s.of.with_next) --made;
        REQUIRE(*made == s.of);
        REQUIRE(receiver_of(problem, table, rank, s.of) == s.peer);
        channels[{rank, s.peer}].push_back(s.of);
      }
      if (s.kind != instruction_kind::compute) continue;
      computed.push_back(s.of);
      bool const is_forward = s.of.kind == forward;
      if (!is_forward && !makes_input_gradient(s.of.kind)) continue;
      int const source = is_forward ? s.of.chunk - 1 : s.of.chunk + 1;
      if (source < 0 || source >= problem.chunks ||
          rank_of(table.where, problem.ranks, source, s.of.micro_batch) == rank)
        continue;
      REQUIRE(received.count({is_forward, source, s.of.micro_batch}) == 1);
    }
    REQUIRE(computed == table.row(rank));
  }
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < steps.size(rank); ++i)
      if (rank_instruction const s = steps.at(rank, i); s.kind == instruction_kind::receive) {
        auto& channel = channels[{s.peer, rank}];
        REQUIRE(!channel.empty());
        REQUIRE(channel.front() == s.of);
        channel.pop_front();
      }
  for (auto const& [pair, left] : channels) REQUIRE(left.empty());
}

/// A receiver with these slots has read what lies in one for the last time before it receives the
/// next value there.
template <class Slots>
bool fits(reference::many_costs const& problem, dynamic_table const& table, Slots const& slots) {
  auto const steps = communicate(problem, table, slots);
  if (!check_rendezvous(problem, steps).ok()) return false;
  int const copies = replicas(table.where);
  for (int rank = 0; rank < problem.ranks; ++rank) {
    std::set<std::tuple<bool, int, int>> read;  // forward, reading chunk, micro-batch
    for (int i = 0; i < steps.size(rank); ++i) {
      rank_instruction const s = steps.at(rank, i);
      int const mb = s.of.micro_batch;
      if (s.kind == instruction_kind::compute) {
        if (table.trains ? makes_weight_gradient(s.of.kind) : s.of.kind == forward)
          read.insert({true, s.of.chunk, mb}), read.insert({false, s.of.chunk, mb});
      } else if (s.kind == instruction_kind::receive) {
        bool const is_value = s.of.kind == forward;
        int const reader = is_value ? s.of.chunk + 1 : s.of.chunk - 1;
        slot_count const there = slots[std::size_t(is_value ? s.of.chunk : reader)];
        int const before = mb - copies * (is_value ? there.activation : there.gradient);
        if (before >= 0 && read.count({is_value, reader, before}) == 0) return false;
      }
    }
  }
  return true;
}

/// The slots that the timeline of a table needs.
std::vector<slot_count> slots_of(reference::many_costs const& problem, dynamic_table const& table) {
  std::vector<slot_count> slots;
  auto const when = simulate(problem, table);
  for (int b = 0; b + 1 < problem.chunks; ++b)
    slots.push_back(boundary_slots(problem, table, when, b));
  return slots;
}

TEST_CASE("what is received has a free slot", "[communication]") {
  dice roll(9);
  int tight = 0;
  for (int i = 0; i < 300; ++i)
    for (placement where : reference::placements) {
      auto const problem = reference::random_problem(roll, where, 5, 6, 0);
      auto const table =
          reference::random_table(roll, problem, where, reference::styles[std::size_t(roll(0, 3))]);
      auto slots = slots_of(problem, table);
      REQUIRE(fits(problem, table, slots));
      for (slot_count& s : slots) ++s.activation, ++s.gradient;  // as a pipeline plans them
      REQUIRE(fits(problem, table, slots));
      for (slot_count& s : slots) s = {1, 1};
      if (validate(problem, table, slots).ok())
        REQUIRE(fits(problem, table, slots));
      else
        ++tight;
    }
  REQUIRE(tight > 100);  // tables that one slot would lock
}
TEST_CASE("forward alone runs ahead no further than there are slots", "[communication]") {
  for (int slots : {1, 2, 3}) {
    reference::many_costs problem;
    problem.ranks = problem.chunks = 3;
    problem.micro_batches = 8;
    problem.costs = {{1, 1, 1}, {9, 1, 1}, {2, 1, 1}};  // the second rank is slow
    auto table = dynamic_table(3, placement::straight, false);
    for (int r = 0; r < 3; ++r)
      for (int mb = 0; mb < 8; ++mb) table.push(r, {forward, r, mb});
    CHECK(fits(problem, table, same_slots{{slots, slots}}));
    auto const eager = communicate(problem, table);
    int ahead = 0, most = 0;  // received by the second rank before it reads any
    for (int i = 0; i < eager.size(1); ++i) {
      if (eager.at(1, i).kind == instruction_kind::receive) most = std::max(most, ++ahead);
      if (eager.at(1, i).kind == instruction_kind::compute) --ahead;
    }
    CHECK(most > slots);  // without a limit it does
  }
}

TEST_CASE("transfers of any right table come in order and cannot lock", "[communication]") {
  dice roll(5);
  for (int i = 0; i < 400; ++i)
    for (placement where : reference::placements) {
      auto const problem = reference::random_problem(roll, where, 5, 6, 0);
      check_laws(problem, reference::random_table(roll, problem, where,
                                                  reference::styles[std::size_t(roll(0, 3))]));
    }
}

TEST_CASE("transfers of every family", "[communication]") {
  for (family const& f : catalog)
    for (int p : {1, 2, 4, 6})
      for (long hop : {0L, 2L}) {
        int const m = 2 * p + p % 3,
                  chunks = chunks_for(f.where, p, f.chunks_per_rank > 0 ? f.chunks_per_rank : 2);
        run_time_problem problem{p, chunks, m, hop,
                                 std::vector<chunk_cost>(std::size_t(chunks), chunk_cost{3, 2, 4})};
        if (f.refuses(problem)) continue;
        INFO(f.name << " p " << p << " m " << m);
        check_laws(problem, make_dynamic_table(f, problem));
      }
}

TEST_CASE("a receive that blocks a send is found", "[communication]") {
  auto const problem = equal_times(2, 1);
  auto steps = communicate(problem, make_dynamic_table<OneFOneB>(problem));
  REQUIRE(check_rendezvous(problem, steps).ok());
  auto& first = steps.items[0];
  auto const send = std::find_if(first.begin(), first.end(), [](rank_instruction const& s) {
    return s.kind == instruction_kind::send;
  });
  auto const receive = std::find_if(first.begin(), first.end(), [](rank_instruction const& s) {
    return s.kind == instruction_kind::receive;
  });
  std::iter_swap(send, receive);  // the first rank waits for the gradient before it sends the value
  verdict const found = check_rendezvous(problem, steps);
  REQUIRE(found.what == fault::deadlock);
  REQUIRE(found.rank == 0);
  REQUIRE(found.which == action{backward, 1, 0});
}

constexpr auto small = equal_times(2, 2);
constexpr auto small_steps = communicate(small, make_table<OneFOneB, 2, 2>(small));
static_assert(check_rendezvous(small, small_steps).ok());
static_assert(small_steps.at(0, 1) == rank_instruction{instruction_kind::send, {forward, 0, 0}, 1});

}  // namespace
