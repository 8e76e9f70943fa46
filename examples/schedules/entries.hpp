// SPDX-License-Identifier: BSL-1.0
//
// The problems that the program `schedules` is asked about, and the schedules of each.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <pipe/report/problem_file.hpp>
#include <pipe/schedule/appraise.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/families/recompute_ahead.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lengths.hpp"

namespace schedules {

/// A schedule with all that is known about it.
struct entry {
  std::string name, verdict = "ok";
  std::string problem_name;  // of a file
  bool is_from_a_file = false;
  int chunks_per_rank = 1;
  int parts = 1;                     // chunks of a rank, replicas counted once
  int steps = 1, micro_batches = 1;  // all micro-batches of the steps
  int scale = 1;                     // the problem's times are this many times those asked for
  long coarse = 1;                   // or this many times fewer
  double stage = 1;  // what one rank keeps of one micro-batch, in the unit of the problem's memory
  std::vector<double> limits;  // in stages; none, of all ranks, or of each
  pp::schedules::run_time_problem problem;
  pp::schedules::dynamic_table table{0};
  pp::schedules::appraisal numbers;
  std::optional<length_study> lengths;

  bool exists() const { return table.ranks() > 0; }
};

/// The number of the link between two ranks, of which the last rank's leads to the first.
inline long of_link(std::vector<long> const& all, int ranks, int one, int other) {
  bool const is_next = std::abs(one - other) == 1;
  std::size_t const link = std::size_t(is_next ? std::min(one, other) : ranks - 1);
  return all.size() == 1     ? all[0]
         : link < all.size() ? all[link]
                             : *std::max_element(all.begin(), all.end());
}

/// Gives the problem the links that are asked for; times are counted in parts of 1 / scale.
inline void set_links(pp::schedules::run_time_problem& problem, request const& r,
                      pp::schedules::placement where, int scale) {
  for (int c = 0; c < problem.chunks; ++c) {
    auto& cost = problem.costs[std::size_t(c)];
    int const rank = pp::schedules::rank_of(where, r.ranks, c),
              next = pp::schedules::rank_of(where, r.ranks, std::min(c + 1, problem.chunks - 1));
    if (!r.bytes.empty()) cost.bytes = r.bytes[r.bytes.size() == 1 ? 0 : std::size_t(rank)] * scale;
    if (!r.hop.empty()) cost.hop = of_link(r.hop, r.ranks, rank, next) * scale;
    if (!r.bandwidth.empty()) cost.bandwidth = of_link(r.bandwidth, r.ranks, rank, next);
  }
}

/// Counts the problem's times in `coarse` of their unit.
inline void make_coarse(pp::schedules::run_time_problem& problem, long coarse) {
  if (coarse == 1) return;
  auto const divide = [&](long& time) {
    if (time > 0) time = (time + coarse / 2) / coarse;
  };
  auto const multiply = [&](long& rate) {
    if (rate > 0) rate = rate > LONG_MAX / 4 / coarse ? LONG_MAX / 4 : rate * coarse;
  };
  divide(problem.hop);
  multiply(problem.bandwidth);
  for (pp::schedules::chunk_cost& c : problem.costs) {
    for (long* time :
         {&c.forward, &c.backward_input, &c.backward_weight, &c.recompute, &c.hidden, &c.hop})
      divide(*time);
    multiply(c.bandwidth);
  }
}

/// Gives e's problem the limits that are asked for, or else those of its file.
inline void set_limits(entry& e, request const& r, pp::schedules::placement where) {
  pp::schedules::run_time_problem& problem = e.problem;
  long const of_1f1b = pp::schedules::memory_of_1f1b(problem, where);
  e.stage = std::max(1.0, double(of_1f1b / problem.ranks));
  std::vector<long> limits;
  for (double x : r.limit) {
    e.limits.push_back(x * r.ranks);
    limits.push_back(std::max(1L, long(memory_limit(x, r.ranks, e.stage))));
  }
  for (long x : r.room) limits.push_back(r.problem ? x : x * e.parts);
  if (!limits.empty()) {
    problem.limit = limits.size() == 1 ? limits[0] : 0;
    problem.rooms = limits.size() == 1 ? std::vector<long>{} : limits;
  } else if (!problem.rooms.empty()) {
    for (int rank = 0; rank < problem.ranks; ++rank) limits.push_back(problem.room(rank));
  } else if (problem.limit > 0) {
    limits.push_back(problem.limit);
  }
  if (r.limit.empty())
    for (long x : limits) e.limits.push_back(double(x) / e.stage);
}

/// Gives e its problem: a rank's times and memory in equal parts, one for each of its chunks. Times
/// that do not divide are counted in parts of their unit. A problem of a file has its own chunks.
inline void pose(entry& e, request const& r, pp::schedules::placement where) {
  e.steps = r.steps;
  e.micro_batches = r.micro_batches * r.steps;
  e.problem_name = r.problem_name;
  int const parts = e.parts = e.chunks_per_rank / pp::schedules::replicas(where);
  pp::schedules::run_time_problem& problem = e.problem;
  if (r.problem) {
    problem = *r.problem;
    problem.micro_batches = r.micro_batches;
    if (long const needed = long(r.ranks) * parts; problem.chunks != needed) {
      e.verdict = "needs " + std::to_string(needed) + " chunks, and the problem has " +
                  std::to_string(problem.chunks);
      return;
    }
  } else {
    for (auto const* times : {&r.forward, &r.backward, &r.weight})
      for (long t : *times)
        if (t % parts != 0) e.scale = parts;
    problem.ranks = r.ranks;
    problem.chunks = problem.ranks * parts;
    problem.micro_batches = r.micro_batches;
    for (int c = 0; c < problem.chunks; ++c) {
      int const rank = pp::schedules::rank_of(where, problem.ranks, c);
      auto const part = [&](std::vector<long> const& t) {
        return t[t.size() == 1 ? 0 : std::size_t(rank)] * e.scale / parts;
      };
      pp::schedules::chunk_cost cost{part(r.forward), part(r.backward), part(r.weight)};
      if (r.recomputed == "in-backward") cost.backward_input += cost.forward;
      cost.memory = {r.memory[0], r.memory[1], r.memory[2]};
      problem.costs.push_back(cost);
    }
  }
  set_links(problem, r, where, e.scale);
  make_coarse(problem, e.coarse = r.coarse);
  set_limits(e, r, where);
}

/// Whether the links from the first rank down are those from the last rank up.
inline bool are_alike_from_both_ends(pp::schedules::run_time_problem const& problem) {
  for (int c = 0, links = problem.chunks - 1; c < links; ++c) {
    auto const &one = problem.cost(c), &other = problem.cost(links - 1 - c);
    if (one.hop != other.hop || one.bandwidth != other.bandwidth) return false;
  }
  return true;
}
inline bool are_alike_from_both_ends(request const& r) {
  for (auto const* all : {&r.hop, &r.bandwidth, &r.bytes}) {
    int const links = all == &r.bytes ? r.ranks : r.ranks - 1;
    for (int i = 0; i < links && all->size() > 1; ++i)
      if ((*all)[std::size_t(i)] != (*all)[std::size_t(links - 1 - i)]) return false;
  }
  return !r.problem || are_alike_from_both_ends(*r.problem);
}

/// Which action is wrong, where, and why.
inline std::string sentence_of(pp::schedules::verdict const& v) {
  if (v.rank < 0) return v.text();
  return std::string(pp::schedules::short_name(v.which.kind)) + " of chunk " +
         std::to_string(v.which.chunk) + " and micro-batch " + std::to_string(v.which.micro_batch) +
         " on rank " + std::to_string(v.rank) + ", position " + std::to_string(v.position) + ": " +
         v.text();
}

/// Whether a table could have R, which reads the weights of forward and backward, and has none yet.
inline bool may_recompute(pp::schedules::dynamic_table const& table) {
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (pp::schedules::action const& a : table.row(rank))
      if (a.kind == pp::schedules::action_kind::recompute) return false;
  return table.trains && table.drift == 0;
}
/// Makes e's table one with R ahead.
inline void recompute_ahead(entry& e) {
  auto table = pp::schedules::dynamic_table(e.problem.ranks, e.table.where);
  pp::schedules::insert_recomputes(e.problem, e.table, table);
  e.table = std::move(table);
}

/// Makes e's table one of several steps.
inline void repeat(entry& e, int steps) {
  if (steps == 1) return;
  e.table = pp::schedules::repeated(e.problem, e.table, steps);
  e.problem = pp::schedules::repeated(e.problem, steps);
}

inline void judge(entry& e) {
  e.numbers = pp::schedules::appraise(e.problem, e.table);
  bool const is_over_limit = e.numbers.found.what == pp::schedules::fault::over_limit;
  if (is_over_limit) {  // and is it right otherwise?
    long const limit = std::exchange(e.problem.limit, 0);
    std::vector<long> rooms = std::exchange(e.problem.rooms, {});
    e.numbers = pp::schedules::appraise(e.problem, e.table);
    e.problem.limit = limit;
    e.problem.rooms = std::move(rooms);
  }
  if (!e.numbers.found.ok()) {
    e.verdict = sentence_of(e.numbers.found);
    e.table = pp::schedules::dynamic_table(0);
    return;
  }
  if (is_over_limit) e.verdict = "needs more memory than the limit";
}

/// Whether it is the search whose placement, objective and effort are asked for.
inline bool is_searched(pp::schedules::family const& f) { return f.name == pp::Searched<>::name; }

inline pp::schedules::placement placement_for(request const& r, pp::schedules::family const& f) {
  using enum pp::schedules::placement;
  if (!is_searched(f)) return f.where;
  return r.searched_placement == "straight" ? straight : r.searched_placement == "vee" ? vee : loop;
}
inline int chunks_per_rank_for(request const& r, pp::schedules::family const& f,
                               pp::schedules::placement where) {
  if (is_searched(f)) return where == pp::schedules::placement::straight ? 1 : r.chunks;
  return f.chunks_per_rank > 0 ? f.chunks_per_rank : r.chunks;
}

/// The order that is found; an empty table where not even one micro-batch fits into the limit.
inline pp::schedules::dynamic_table search(request const& r,
                                           pp::schedules::run_time_problem const& problem,
                                           pp::schedules::placement where) {
  using pp::detail::search_options, pp::schedules::objective;
  search_options options;
  options.want = r.minimised == "makespan" ? objective::makespan : objective::stage_local_span;
  options.effort = std::lround(r.effort * double(search_options::usual_effort));
  auto table = pp::schedules::dynamic_table(problem.ranks, where);
  if (r.minimised == "period")
    pp::detail::search_by_period(problem, table, options);
  else
    pp::detail::search(problem, table, options);
  return table;
}

/// Gives e its table, or says in its verdict why there is none.
inline void fill(entry& e, request const& r, pp::schedules::family const& f,
                 pp::schedules::placement where) {
  if (is_searched(f)) {
    e.table = search(r, e.problem, where);
    if (e.table.size(0) > 0) return;
    e.table = pp::schedules::dynamic_table(0);
    e.verdict = "not even one micro-batch fits into the memory limit";
  } else if (char const* why = f.refuses(e.problem)) {
    e.verdict = why;
  } else {
    e.table = pp::schedules::make_dynamic_table(f, e.problem);
  }
}

inline entry entry_of(request const& r, pp::schedules::family const& f) {
  pp::schedules::placement const where = placement_for(r, f);
  entry e;
  e.name = f.name;
  e.chunks_per_rank = chunks_per_rank_for(r, f, where);
  pose(e, r, where);
  if (e.verdict != "ok") return e;
  if (pp::schedules::replicas(where) > 1 && !are_alike_from_both_ends(r)) {
    e.verdict = "needs links that are alike from both ends, since micro-batches go both ways";
    return e;
  }
  fill(e, r, f, where);
  if (!e.exists()) return e;
  bool const has_flush = e.table.mini_batch == 0;
  if (!has_flush && r.steps > 1) {  // as many micro-batches, in mini-batches of its own
    e.problem = pp::schedules::repeated(e.problem, r.steps);
    e.table = pp::schedules::make_dynamic_table(f, e.problem);
  }
  if (r.recomputed == "ahead") {
    if (!may_recompute(e.table)) {
      e.verdict = "recomputes nothing ahead: it does not train, or backward reads newer weights";
      e.table = pp::schedules::dynamic_table(0);
      return e;
    }
    recompute_ahead(e);
  }
  if (has_flush) repeat(e, r.steps);
  judge(e);
  return e;
}

/// The schedule of the file, if there is one.
inline std::optional<pp::schedules::read_schedule> read_file(request const& r) {
  if (r.read.name.empty()) return std::nullopt;
  try {
    return pp::schedules::read_torch_csv(r.read.text);
  } catch (pp::data_error const& fault) {
    refuse(r.read.name + ": " + fault.what());
  }
}

/// A request for each problem: each file, or else each number of ranks, with each number of
/// micro-batches. What is asked beside a schedule of a file is of its size.
inline std::vector<request> problems_of(request const& all,
                                        std::optional<pp::schedules::read_schedule> const& file) {
  std::vector<request> problems;
  auto const settle = [&](char const* option, int asked, int there, char const* what) {
    if (file && asked != there)
      refuse(std::string(option) + " " + std::to_string(asked) + " contradicts " + all.read.name +
             ", which has " + std::to_string(there) + " " + what);
  };
  auto const add = [&](request r, int usual) {
    std::vector<int> micro_batches = r.asked_micro_batches;
    if (micro_batches.empty()) micro_batches.push_back(file ? file->micro_batches : usual);
    for (int const m : micro_batches) {
      if (file) settle("--micro-batches", m, file->micro_batches, "micro-batches");
      r.micro_batches = m;
      problems.push_back(r);
    }
  };
  for (named_text const& of : all.problem_files) {
    request r = all;
    r.problem_name = of.name;
    pp::detail::problem_reader reader(of.text, of.name);
    r.problem = reader.read();
    if (reader.lengths() != nullptr) r.length_costs = *reader.lengths();
    r.ranks = r.problem->ranks;
    r.chunks = std::max(1, r.problem->chunks / r.ranks);
    if (r.searched_placement.empty()) r.searched_placement = r.chunks == 1 ? "straight" : "vee";
    if (file) settle(of.name.c_str(), r.ranks, file->table.ranks(), "ranks");
    add(std::move(r), r.problem->micro_batches);
  }
  if (!problems.empty()) return problems;
  std::vector<int> ranks = all.asked_ranks;
  if (ranks.empty()) ranks.push_back(file ? file->table.ranks() : all.ranks);
  for (int const p : ranks) {
    if (file) settle("--ranks", p, file->table.ranks(), "ranks");
    request r = all;
    r.ranks = p;
    if (r.searched_placement.empty()) r.searched_placement = "straight";
    for (auto* links : {&r.hop, &r.bandwidth, &r.bytes})
      if (links->empty()) links->push_back(0);
    add(std::move(r), all.micro_batches);
  }
  return problems;
}

inline std::vector<entry> entries_of(request const& r,
                                     std::optional<pp::schedules::read_schedule> const& file) {
  std::vector<entry> entries;
  if (file) {
    entry e;
    e.name = r.read.name;
    e.is_from_a_file = true;
    e.chunks_per_rank = file->chunks / r.ranks * pp::schedules::replicas(file->table.where);
    pose(e, r, file->table.where);
    if (e.verdict == "ok") {
      e.table = file->table;
      judge(e);
    }
    if (e.exists() && r.recomputed == "ahead" && may_recompute(e.table)) {
      recompute_ahead(e);
      judge(e);
    }
    if (e.exists() && r.steps > 1) {
      repeat(e, r.steps);
      judge(e);
    }
    entries.push_back(std::move(e));
  }
  std::vector<std::string> names = r.names;
  if (names.empty() && !file) names = {"all"};
  for (std::string const& name : names) {
    if (name == "all") {
      for (pp::schedules::family const& f : pp::schedules::catalog)
        entries.push_back(entry_of(r, f));
      continue;
    }
    pp::schedules::family const* const f = pp::schedules::find_family(name);
    if (f == nullptr) {
      std::string known;
      for (pp::schedules::family const& k : pp::schedules::catalog)
        known += (known.empty() ? "" : ", ") + std::string(k.name);
      refuse("no schedule is called '" + name + "'; there are: " + known);
    }
    entries.push_back(entry_of(r, *f));
  }
  return entries;
}

}  // namespace schedules
