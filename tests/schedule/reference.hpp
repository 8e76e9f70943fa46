// SPDX-License-Identifier: BSL-1.0
//
// A second opinion on schedules, written to be obviously right and nothing else: clocks tick, maps
// remember, nothing is shared with the library but the words `schedules::action` and
// `schedules::placement`. And a maker of random tables to be judged by both.
#pragma once

#include <algorithm>
#include <map>
#include <pipe/schedule.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace reference {

using pp::schedules::action;
using pp::schedules::action_kind;
using many_costs =
    pp::schedules::problem<std::vector<pp::schedules::chunk_cost>, std::vector<long>>;

inline int holder(pp::schedules::placement where, int ranks, int chunk, int mb) {
  if (where == pp::schedules::placement::bidirectional) return mb % 2 ? ranks - 1 - chunk : chunk;
  if (where == pp::schedules::placement::straight) return chunk;
  bool const upwards = where == pp::schedules::placement::vee && (chunk / ranks) % 2 == 1;
  return upwards ? ranks - 1 - chunk % ranks : chunk % ranks;
}

/// A result: the chunk's output (F), its input's gradient (B) or its weights' gradient (W).
using result = std::tuple<char, int, int>;

inline std::set<result> results_of(action const& a) {
  switch (a.kind) {
    case action_kind::forward: return {{'F', a.chunk, a.micro_batch}};
    case action_kind::backward_input: return {{'B', a.chunk, a.micro_batch}};
    case action_kind::backward_weight: return {{'W', a.chunk, a.micro_batch}};
    case action_kind::backward:
      return {{'B', a.chunk, a.micro_batch}, {'W', a.chunk, a.micro_batch}};
    case action_kind::recompute:
    case action_kind::update: break;
  }
  return {};
}

inline std::set<result> needs_of(action const& a, int chunks) {
  std::set<result> needs;
  bool const input_gradient =
      a.kind == action_kind::backward_input || a.kind == action_kind::backward;
  if (a.kind == action_kind::forward && a.chunk > 0)
    needs.insert({'F', a.chunk - 1, a.micro_batch});
  if (input_gradient || a.kind == action_kind::recompute)
    needs.insert({'F', a.chunk, a.micro_batch});
  if (input_gradient && a.chunk + 1 < chunks) needs.insert({'B', a.chunk + 1, a.micro_batch});
  if (a.kind == action_kind::backward_weight) needs.insert({'B', a.chunk, a.micro_batch});
  if (a.kind == action_kind::update) needs.insert({'W', a.chunk, a.micro_batch});
  return needs;
}

inline long duration(many_costs const& problem, action const& a) {
  auto const& cost = problem.costs[static_cast<std::size_t>(a.chunk)];
  switch (a.kind) {
    case action_kind::forward: return cost.forward;
    case action_kind::recompute: return cost.forward;
    case action_kind::backward_input: return cost.backward_input;
    case action_kind::backward_weight: return cost.backward_weight;
    case action_kind::backward: return cost.backward_input + cost.backward_weight;
    case action_kind::update: break;
  }
  return 0;
}

/// The time of a value, or of its gradient, from one rank to another.
inline long time_on_link(many_costs const& problem, int boundary) {
  auto const& cost = problem.costs[std::size_t(boundary)];
  long const bytes_at_once = cost.bandwidth == -1 ? problem.bandwidth : cost.bandwidth;
  long time = cost.hop == -1 ? problem.hop : cost.hop;
  for (long sent = 0; bytes_at_once > 0 && sent < cost.bytes; sent += bytes_at_once) ++time;
  return time;
}

struct course {
  bool finished = false;
  long makespan = 0;
  std::vector<std::vector<std::pair<long, long>>> spans;
};

/// Lets the ranks loose: at every moment at which anything can have changed, every idle rank looks
/// whether its next action's needs have arrived.
inline course run(many_costs const& problem, pp::schedules::dynamic_table const& table) {
  std::size_t const ranks = table.items.size();
  course answer;
  answer.spans.resize(ranks);
  std::map<result, std::pair<long, std::size_t>> made;  // when, and by whom
  std::vector<long> busy_until(ranks, 0);
  std::set<long> moments{0};
  while (!moments.empty()) {
    long const now = *moments.begin();
    moments.erase(moments.begin());
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        auto& done = answer.spans[rank];
        if (busy_until[rank] > now || done.size() == table.items[rank].size()) continue;
        // One action, or the two of a pair, which begins and ends with both.
        auto const first = table.items[rank].begin() + long(done.size());
        std::vector<action> const begun(first, first + (first->with_next ? 2 : 1));
        bool ready = true;
        for (action const& a : begun)
          for (result const& need : needs_of(a, problem.chunks)) {
            auto const found = made.find(need);
            ready = ready && found != made.end() &&
                    found->second.first +
                            (found->second.second == rank
                                 ? 0
                                 : time_on_link(problem, std::min(std::get<1>(need), a.chunk))) <=
                        now;
          }
        if (!ready) continue;
        long end = now;
        for (action const& a : begun) {
          done.emplace_back(end, end + duration(problem, a));
          end = done.back().second;
        }
        for (action const& a : begun)
          for (result const& r : results_of(a)) made.emplace(r, std::pair{end, rank});
        busy_until[rank] = end;
        if (end > now) moments.insert(end);
        for (int boundary = 0; boundary < problem.chunks; ++boundary)
          if (long const there = end + time_on_link(problem, boundary); there > now)
            moments.insert(there);
        answer.makespan = std::max(answer.makespan, end);
        changed = true;
      }
    }
  }
  answer.finished = true;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    answer.finished = answer.finished && answer.spans[rank].size() == table.items[rank].size();
  return answer;
}

/// Whether the table is a right one, by the letter of the definition.
inline bool is_right(many_costs const& problem, pp::schedules::dynamic_table const& table) {
  std::map<result, int> made;
  std::map<std::pair<char, int>, std::map<int, std::vector<int>>>
      order;  // of (result, chunk), by rank
  std::set<std::tuple<int, int>> recomputed, updated;
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (int i = 0; i < table.size(rank); ++i) {
      action const a = table.at(rank, i);
      if (a.with_next) {  // F, and a backward of another micro-batch, which has no mark
        if (i + 1 == table.size(rank)) return false;
        action const b = table.at(rank, i + 1);
        bool const is_backward =
            b.kind == action_kind::backward || b.kind == action_kind::backward_input;
        if (a.kind != action_kind::forward || !is_backward || b.micro_batch == a.micro_batch ||
            b.with_next)
          return false;
      }
      if (a.chunk < 0 || a.chunk >= problem.chunks || a.micro_batch < 0 ||
          a.micro_batch >= problem.micro_batches)
        return false;
      if (holder(table.where, problem.ranks, a.chunk, a.micro_batch) != rank) return false;
      if (!table.trains && a.kind != action_kind::forward) return false;
      std::tuple const place{a.chunk, a.micro_batch};
      if (a.kind == action_kind::recompute &&
          (!recomputed.insert(place).second || made.count({'B', a.chunk, a.micro_batch})))
        return false;
      if (a.kind == action_kind::update &&
          (!updated.insert(place).second ||
           a.micro_batch + (table.where == pp::schedules::placement::bidirectional ? 2 : 1) <
               problem.micro_batches))
        return false;
      int const copy =
          table.where == pp::schedules::placement::bidirectional ? a.micro_batch % 2 : 0;
      if (a.kind == action_kind::recompute) order[{'R', a.chunk}][copy].push_back(a.micro_batch);
      for (result const& r : results_of(a)) {
        ++made[r];
        order[{std::get<0>(r), a.chunk}][copy].push_back(a.micro_batch);
      }
    }
  for (int chunk = 0; chunk < problem.chunks; ++chunk)
    for (int mb = 0; mb < problem.micro_batches; ++mb)
      for (char what : {'F', 'B', 'W'})
        if (made[{what, chunk, mb}] != (what == 'F' || table.trains ? 1 : 0)) return false;
  for (auto const& [what, copies] : order)
    for (auto const& [copy, micro_batches] : copies)
      if (!std::is_sorted(micro_batches.begin(), micro_batches.end())) return false;
  return run(problem, table).finished;
}

/// Chance, with the same course in every run of the tests.
class dice {
 public:
  explicit dice(unsigned seed) : engine_(seed) {}
  int operator()(int from, int to) {
    return from + static_cast<int>(engine_() % static_cast<unsigned>(to - from + 1));
  }

 private:
  std::mt19937 engine_;
};

/// A problem for a placement, with up to the given sizes and times from `shortest` on.
inline many_costs random_problem(dice& roll, pp::schedules::placement where, int most_ranks,
                                 int most_micro_batches, int shortest) {
  many_costs problem;
  problem.ranks = roll(1, most_ranks);
  bool const many =
      where == pp::schedules::placement::loop || where == pp::schedules::placement::vee;
  problem.chunks = problem.ranks * (many ? roll(1, 3) : 1);
  problem.micro_batches = roll(1, most_micro_batches);
  problem.hop = roll(0, 3) == 0 ? 0 : roll(0, 7);
  problem.bandwidth = roll(0, 2) == 0 ? roll(1, 40) : 0;
  bool const links_differ = roll(0, 2) == 0;
  for (int chunk = 0; chunk < problem.chunks; ++chunk) {
    pp::schedules::chunk_cost cost;
    cost.forward = roll(shortest, 9);
    cost.backward_input = roll(shortest, 9);
    cost.backward_weight = roll(shortest, 9);
    int const added = roll(0, 9), kept_for_weight = roll(0, added);
    cost.memory = {added, kept_for_weight - added, -kept_for_weight};
    cost.bytes = roll(0, 99);
    if (links_differ && roll(0, 1) == 0) cost.hop = roll(0, 9);
    if (links_differ && roll(0, 1) == 0) cost.bandwidth = roll(0, 40);
    problem.costs.push_back(cost);
  }
  return problem;
}

enum class style {
  forward_only,
  whole,
  split,
  anything
};  // anything: BW here, B and W there, now and then an R, a U

/// A right table: again and again some action that could come next, whichever.
inline pp::schedules::dynamic_table random_table(dice& roll, many_costs const& problem,
                                                 pp::schedules::placement where, style how) {
  auto table = pp::schedules::dynamic_table(problem.ranks, where, how != style::forward_only);
  int const step = where == pp::schedules::placement::bidirectional ? 2 : 1;
  std::set<result> made;
  auto const follows = [&](char what, int chunk,
                           int mb) {  // the micro-batch before has been through
    return made.count({what, chunk, mb}) == 0 &&
           (mb < step || made.count({what, chunk, mb - step}) > 0);
  };
  for (;;) {
    std::vector<action> next;
    for (int chunk = 0; chunk < problem.chunks; ++chunk)
      for (int mb = 0; mb < problem.micro_batches; ++mb) {
        auto const offer = [&](action_kind kind) {
          action const a{kind, chunk, mb};
          for (result const& need : needs_of(a, problem.chunks))
            if (made.count(need) == 0) return;
          for (result const& r : results_of(a))
            if (!follows(std::get<0>(r), chunk, mb)) return;
          next.push_back(a);
        };
        offer(action_kind::forward);
        if (how == style::whole || how == style::anything) offer(action_kind::backward);
        if (how == style::split || how == style::anything) {
          offer(action_kind::backward_input);
          offer(action_kind::backward_weight);
        }
        bool before_backward = made.count({'B', chunk, mb}) == 0;
        for (int later = mb; later < problem.micro_batches; ++later)
          before_backward = before_backward && made.count({'R', chunk, later}) == 0;
        if (how == style::anything && before_backward && roll(0, 9) == 0)
          offer(action_kind::recompute);
      }
    if (next.empty()) break;
    action const a = next[static_cast<std::size_t>(roll(0, static_cast<int>(next.size()) - 1))];
    for (result const& r : results_of(a)) made.insert(r);
    if (a.kind == action_kind::recompute) made.insert({'R', a.chunk, a.micro_batch});
    table.push(holder(where, problem.ranks, a.chunk, a.micro_batch), a);
  }
  for (int last = problem.micro_batches - 1;
       how == style::anything && last >= 0 && last > problem.micro_batches - 1 - step; --last)
    for (int chunk = 0; chunk < problem.chunks; ++chunk)
      table.push(holder(where, problem.ranks, chunk, last), {action_kind::update, chunk, last});
  return table;
}

inline constexpr pp::schedules::placement placements[] = {
    pp::schedules::placement::straight, pp::schedules::placement::loop,
    pp::schedules::placement::vee, pp::schedules::placement::bidirectional};
inline constexpr style styles[] = {style::forward_only, style::whole, style::split,
                                   style::anything};

}  // namespace reference
