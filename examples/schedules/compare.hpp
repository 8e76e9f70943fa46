// SPDX-License-Identifier: BSL-1.0
//
// What the program `schedules` is asked, and what it answers.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <pipe/report/drawing.hpp>
#include <pipe/report/html.hpp>
#include <pipe/report/svg.hpp>
#include <pipe/report/terminal.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/report/trace.hpp>
#include <pipe/schedule/catalog.hpp>
#include <pipe/schedule/floors.hpp>
#include <pipe/schedule/torch_csv.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace schedules {

struct request {
  int ranks = 4, micro_batches = 8, chunks = 2;
  std::vector<long> forward{1}, backward{1}, weight{1}, memory{1, 0, -1};
  long hop = 0;
  std::optional<double> limit;  // of ranks times what F adds
  std::vector<std::string> names{"all"};
  std::string format = "table";
  std::string read_name, read_text;
  int width = 100;       // of text
  bool colours = false;  // in text
};

/// A schedule with all that is known about it.
struct entry {
  std::string name, verdict = "ok";
  int chunks_per_rank = 1;
  int parts = 1;  // chunks of a rank, replicas counted once: memory is in units of one part
  int scale = 1;  // the problem's times are this many times those asked for
  pp::run_time_problem problem;
  pp::dynamic_table table{0};
  pp::timeline<pp::dynamic_rows<pp::time_span>> when{pp::dynamic_rows<pp::time_span>(0)};
  long peak = 0;

  bool exists() const { return table.ranks() > 0; }
};

inline constexpr double most_actions = 2e8;  // some ten gigabytes
inline constexpr double most_sum = 4e18;     // of times or memory, in 64 bits

[[noreturn]] inline void refuse(std::string const& why) { throw pp::data_error(why); }

inline void check(request const& r) {
  if (r.ranks < 1) refuse("--ranks must be at least 1");
  if (r.micro_batches < 1) refuse("--micro-batches must be at least 1");
  if (r.chunks < 1) refuse("--chunks must be at least 1");
  if (r.hop < 0) refuse("--hop must not be negative");
  auto const times = [&](char const* option, std::vector<long> const& t) {
    if (t.size() != 1 && t.size() != std::size_t(r.ranks))
      refuse(std::string(option) + " needs one time, or one per rank: " + std::to_string(r.ranks) + ", not " +
             std::to_string(t.size()));
    for (long x : t)
      if (x < 0) refuse(std::string(option) + " must not be negative");
  };
  times("--forward", r.forward);
  times("--backward", r.backward);
  times("--weight", r.weight);
  if (r.memory[0] < 1) refuse("--memory: what F adds must be at least 1");
  if (r.memory[0] + r.memory[1] + r.memory[2] != 0) refuse("--memory: what F adds must be given back by B and W");
  constexpr std::string_view formats[] = {"table", "csv", "text", "svg", "html", "trace", "torch"};
  if (std::find(std::begin(formats), std::end(formats), r.format) == std::end(formats))
    refuse("--format must be table, csv, text, svg, html, trace or torch, not '" + r.format + "'");
  if (r.limit && !(*r.limit * r.ranks >= 1)) refuse("--limit has no room for one micro-batch");
  double const actions = 4.0 * r.ranks * r.chunks * r.micro_batches;
  if (actions > most_actions)
    refuse("--ranks, --chunks and --micro-batches ask for too many actions: at most 200 million");
  double largest = double(r.hop) + double(std::max({r.memory[0], std::abs(r.memory[1]), std::abs(r.memory[2])}));
  for (auto const* t : {&r.forward, &r.backward, &r.weight}) largest += double(*std::max_element(t->begin(), t->end()));
  if (largest * actions * r.chunks > most_sum ||
      (r.limit && *r.limit * r.ranks * double(r.memory[0]) * r.chunks > most_sum))
    refuse("times, memory or limit are too large to be added up");
}

/// Gives e its problem: a rank's times and memory in equal parts, one for each of its chunks. Times that do not divide are counted in
/// parts of their unit.
inline void pose(entry& e, request const& r, pp::placement where) {
  int const parts = e.parts = e.chunks_per_rank / pp::replicas(where);
  for (auto const* times : {&r.forward, &r.backward, &r.weight})
    for (long t : *times)
      if (t % parts != 0) e.scale = parts;
  pp::run_time_problem& problem = e.problem;
  problem.ranks = r.ranks;
  problem.chunks = r.ranks * parts;
  problem.micro_batches = r.micro_batches;
  problem.hop = r.hop * e.scale;
  for (int c = 0; c < problem.chunks; ++c) {
    int const rank = pp::rank_of(where, r.ranks, c);
    auto const part = [&](std::vector<long> const& t) {
      return t[t.size() == 1 ? 0 : std::size_t(rank)] * e.scale / parts;
    };
    pp::chunk_cost cost{part(r.forward), part(r.backward), part(r.weight)};
    cost.memory = {r.memory[0], r.memory[1], r.memory[2]};
    problem.costs.push_back(cost);
  }
  if (r.limit) problem.limit = long(*r.limit * double(r.ranks * r.memory[0] * parts));
}

inline void judge(entry& e) {
  pp::verdict const v = pp::validate(e.problem, e.table);
  if (v.what != pp::fault::none && v.what != pp::fault::over_limit) {
    e.verdict = std::string(pp::short_name(v.which.kind)) + " of chunk " + std::to_string(v.which.chunk) +
                " and micro-batch " + std::to_string(v.which.micro_batch) + " on rank " + std::to_string(v.rank) +
                ": " + v.text();
    e.table = pp::dynamic_table(0);
    return;
  }
  e.when = pp::simulate(e.problem, e.table);
  for (int rank = 0; rank < e.problem.ranks; ++rank)
    e.peak = std::max(e.peak, pp::peak_memory(e.problem, e.table, rank));
  if (!v.ok()) e.verdict = "needs more memory than the limit";
}

inline entry entry_of(request const& r, pp::family const& f) {
  entry e;
  e.name = f.name;
  e.chunks_per_rank = f.chunks_per_rank > 0 ? f.chunks_per_rank
                      : f.name == "hanayo"  ? 2 * ((r.chunks + 1) / 2)
                                            : r.chunks;
  pose(e, r, f.where);
  if (char const* why = f.refuses(e.problem)) {
    e.verdict = why;
    return e;
  }
  e.table = pp::make_dynamic_table(f, e.problem);
  judge(e);
  return e;
}

inline std::vector<entry> entries_of(request const& r) {
  std::vector<entry> entries;
  if (!r.read_name.empty()) {
    entry e;
    e.name = r.read_name;
    pp::read_schedule s;
    try {
      s = pp::read_torch_csv(r.read_text);
    } catch (pp::data_error const& fault) {
      refuse(r.read_name + ": " + fault.what());
    }
    request size = r;
    size.ranks = s.table.ranks();
    size.micro_batches = s.micro_batches;
    check(size);
    e.chunks_per_rank = s.chunks / size.ranks * pp::replicas(s.table.where);
    pose(e, size, s.table.where);
    e.table = std::move(s.table);
    judge(e);
    entries.push_back(std::move(e));
    if (r.names == std::vector<std::string>{"all"}) return entries;
  }
  for (std::string const& name : r.names) {
    if (name == "all") {
      for (pp::family const& f : pp::catalog) entries.push_back(entry_of(r, f));
      continue;
    }
    pp::family const* const f = pp::find_family(name);
    if (f == nullptr) {
      std::string known;
      for (pp::family const& k : pp::catalog) known += (known.empty() ? "" : " ") + std::string(k.name);
      refuse("no schedule is called '" + name + "'; there are: " + known);
    }
    entries.push_back(entry_of(r, *f));
  }
  return entries;
}

/// `value` with `digits` decimals.
inline std::string decimals(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// The columns of --format csv and table. Bubbles are idle shares of all ranks' time; their floors, what no schedule with a flush on
/// the same placement can beat.
inline constexpr char const* columns[] = {
    "schedule",       "ranks",       "micro_batches", "chunks", "makespan", "bubble_makespan",
    "floor_makespan", "bubble_span", "floor_span",    "peak",   "limit",    "verdict"};

inline std::vector<std::string> row_of(request const& r, entry const& e) {
  std::vector<std::string> row{e.name, std::to_string(e.exists() ? e.problem.ranks : r.ranks),
                               std::to_string(e.exists() ? e.problem.micro_batches : r.micro_batches),
                               std::to_string(e.chunks_per_rank)};
  std::string const limit = r.limit ? decimals(*r.limit * r.ranks, 2) : "";
  if (!e.exists()) {
    row.insert(row.end(), {"", "", "", "", "", "", limit, e.verdict});
    return row;
  }
  pp::flush_floor const floor = pp::floor_of(e.problem, e.table.where);
  auto const share = [&](long least) {
    double const all = double(least) * e.problem.ranks;
    return all > 0 ? std::max(0.0, 1 - double(e.when.total_busy()) / all) : 0.0;
  };
  double const unit = double(r.memory[0]) * double(e.parts);
  row.insert(row.end(),
             {std::to_string((e.when.makespan + e.scale / 2) / e.scale), decimals(e.when.bubble_by_makespan(), 4),
              decimals(e.table.trains ? share(floor.makespan) : 0, 4), decimals(e.when.bubble_by_stage_local_span(), 4),
              decimals(e.table.trains ? share(floor.stage_local_span) : 0, 4), decimals(double(e.peak) / unit, 2),
              limit, e.verdict});
  return row;
}

inline std::string csv_word(std::string const& word) {
  if (word.find_first_of(",\"\n") == std::string::npos) return word;
  std::string quoted = "\"";
  for (char c : word) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Its title says how large it is and what its numbers count.
inline pp::drawing drawing_of(entry const& e) {
  std::string title =
      e.name + ": P = " + std::to_string(e.problem.ranks) + ", M = " + std::to_string(e.problem.micro_batches);
  if (e.parts > 1) title += ", " + std::to_string(e.parts) + " chunks per rank; memory in chunks";
  if (e.scale > 1) title += "; a unit of time is 1/" + std::to_string(e.scale);
  return pp::drawing_of(e.problem, e.table, e.when, {.title = title});
}

inline std::string answer(request const& r) {
  check(r);
  std::vector<entry> const entries = entries_of(r);
  std::string text;
  if (r.format == "csv") {
    auto const line = [&](auto const& words) {
      bool first = true;
      for (auto const& word : words) text += (first ? "" : ",") + csv_word(word), first = false;
      text += '\n';
    };
    line(columns);
    for (entry const& e : entries) line(row_of(r, e));
    return text;
  }
  if (r.format == "table") {
    pp::text_table table({std::begin(columns), std::end(columns)}, {0, 11});
    for (entry const& e : entries) table.add(row_of(r, e));
    return table.str();
  }
  if (r.format == "text") {
    for (entry const& e : entries) {
      if (!e.exists()) {
        text += e.name + ": " + e.verdict + "\n\n";
        continue;
      }
      text += pp::draw_text(drawing_of(e), {.width = r.width, .colours = r.colours}) + "\n";
    }
    return text;
  }
  if (entries.size() != 1) refuse("--format " + r.format + " shows one schedule: say which with --schedule");
  entry const& e = entries.front();
  if (!e.exists()) refuse(e.name + " " + e.verdict);
  if (r.format == "torch") return pp::torch_csv(e.table);
  pp::drawing const d = drawing_of(e);
  if (r.format == "svg") return pp::draw_svg(d, {.critical = true});
  if (r.format == "html") return pp::draw_html(d);
  return pp::draw_trace(d);
}

}  // namespace schedules
