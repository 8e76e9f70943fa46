// SPDX-License-Identifier: BSL-1.0
//
// What the program `schedules` answers.
#pragma once

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <pipe/report/drawing.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/html.hpp>
#include <pipe/report/svg.hpp>
#include <pipe/report/terminal.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/report/trace.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/families/recompute_ahead.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <pipe/schedule/appraise.hpp>
#include <pipe/schedule/certificate.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "request.hpp"

namespace schedules {

/// A schedule with all that is known about it.
struct entry {
  std::string name, verdict = "ok";
  bool is_from_a_file = false;
  int chunks_per_rank = 1;
  int parts = 1;  // chunks of a rank, replicas counted once: memory is in units of one part
  int steps = 1;
  int scale = 1;  // the problem's times are this many times those asked for
  pp::schedules::run_time_problem problem;
  pp::schedules::dynamic_table table{0};
  pp::schedules::appraisal numbers;

  bool exists() const { return table.ranks() > 0; }
};

/// Gives e its problem: a rank's times and memory in equal parts, one for each of its chunks. Times
/// that do not divide are counted in parts of their unit.
inline void pose(entry& e, request const& r, pp::schedules::placement where) {
  e.steps = r.steps;
  int const parts = e.parts = e.chunks_per_rank / pp::schedules::replicas(where);
  for (auto const* times : {&r.forward, &r.backward, &r.weight})
    for (long t : *times)
      if (t % parts != 0) e.scale = parts;
  pp::schedules::run_time_problem& problem = e.problem;
  problem.ranks = r.ranks;
  problem.chunks = problem.ranks * parts;
  problem.micro_batches = r.micro_batches;
  // The link of two neighbours; the last rank's leads to the first.
  auto const on_link = [&](std::vector<long> const& all, int one, int other) {
    bool const is_next = std::abs(one - other) == 1;
    std::size_t const link = std::size_t(is_next ? std::min(one, other) : r.ranks - 1);
    return all.size() == 1     ? all[0]
           : link < all.size() ? all[link]
                               : *std::max_element(all.begin(), all.end());
  };
  for (int c = 0; c < problem.chunks; ++c) {
    int const rank = pp::schedules::rank_of(where, problem.ranks, c);
    auto const part = [&](std::vector<long> const& t) {
      return t[t.size() == 1 ? 0 : std::size_t(rank)] * e.scale / parts;
    };
    pp::schedules::chunk_cost cost{part(r.forward), part(r.backward), part(r.weight)};
    if (r.recomputed == "in-backward") cost.backward_input += cost.forward;
    cost.memory = {r.memory[0], r.memory[1], r.memory[2]};
    int const next =
        pp::schedules::rank_of(where, problem.ranks, std::min(c + 1, problem.chunks - 1));
    cost.bytes = r.bytes[r.bytes.size() == 1 ? 0 : std::size_t(rank)] * e.scale;
    cost.hop = on_link(r.hop, rank, next) * e.scale;
    cost.bandwidth = on_link(r.bandwidth, rank, next);
    problem.costs.push_back(cost);
  }
  if (r.limit) problem.limit = long(memory_limit(r, parts));
}

/// Whether the links from the first rank down are those from the last rank up.
inline bool are_alike_from_both_ends(request const& r) {
  for (auto const* all : {&r.hop, &r.bandwidth, &r.bytes}) {
    int const links = all == &r.bytes ? r.ranks : r.ranks - 1;
    for (int i = 0; i < links && all->size() > 1; ++i)
      if ((*all)[std::size_t(i)] != (*all)[std::size_t(links - 1 - i)]) return false;
  }
  return true;
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
    e.numbers = pp::schedules::appraise(e.problem, e.table);
    e.problem.limit = limit;
  }
  if (!e.numbers.found.ok()) {
    e.verdict = sentence_of(e.numbers.found);
    e.table = pp::schedules::dynamic_table(0);
    return;
  }
  if (is_over_limit) e.verdict = "needs more memory than the limit";
}

/// `searched` on the placement and for the objective that are asked for; any other family as it is.
template <pp::schedules::placement Where>
pp::schedules::family searched_on(std::string const& minimised) {
  using pp::Searched, pp::schedules::objective;
  if (minimised == "makespan")
    return pp::schedules::family_of<Searched<0, 1, Where, objective::makespan>>();
  if (minimised == "period")
    return pp::schedules::family_of<Searched<0, 1, Where, objective::period>>();
  return pp::schedules::family_of<Searched<0, 1, Where>>();
}
inline pp::schedules::family family_for(request const& r, pp::schedules::family const& f) {
  using pp::schedules::placement;
  if (f.name != pp::Searched<>::name) return f;
  return r.searched_placement == "straight" ? searched_on<placement::straight>(r.minimised)
                                            : searched_on<placement::vee>(r.minimised);
}

inline entry entry_of(request const& r, pp::schedules::family const& of_catalog) {
  pp::schedules::family const f = family_for(r, of_catalog);
  entry e;
  e.name = f.name;
  e.chunks_per_rank = f.chunks_per_rank > 0 ? f.chunks_per_rank : r.chunks;
  pose(e, r, f.where);
  if (pp::schedules::replicas(f.where) > 1 && !are_alike_from_both_ends(r)) {
    e.verdict = "needs links that are alike from both ends, since micro-batches go both ways";
    return e;
  }
  if (char const* why = f.refuses(e.problem)) {
    e.verdict = why;
    return e;
  }
  e.table = pp::schedules::make_dynamic_table(f, e.problem);
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

/// The schedule of the file, if there is one; what is asked beside it is of the same size.
inline std::optional<pp::schedules::read_schedule> read_file(request& r) {
  if (r.read_name.empty()) return std::nullopt;
  pp::schedules::read_schedule s;
  try {
    s = pp::schedules::read_torch_csv(r.read_text);
  } catch (pp::data_error const& fault) {
    refuse(r.read_name + ": " + fault.what());
  }
  auto const settle = [&](char const* option, std::optional<int>& asked, int there,
                          char const* what) {
    if (asked && *asked != there)
      refuse(std::string(option) + " " + std::to_string(*asked) + " contradicts " + r.read_name +
             ", which has " + std::to_string(there) + " " + what);
    asked = there;
  };
  settle("--ranks", r.asked_ranks, s.table.ranks(), "ranks");
  settle("--micro-batches", r.asked_micro_batches, s.micro_batches, "micro-batches");
  return s;
}

inline std::vector<entry> entries_of(request const& r,
                                     std::optional<pp::schedules::read_schedule> file) {
  std::vector<entry> entries;
  if (file) {
    entry e;
    e.name = r.read_name;
    e.is_from_a_file = true;
    e.chunks_per_rank = file->chunks / r.ranks * pp::schedules::replicas(file->table.where);
    pose(e, r, file->table.where);
    e.table = std::move(file->table);
    judge(e);
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

/// `value` with `digits` decimals.
inline std::string decimals(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// The columns of --format csv and table. Bubbles are idle shares of all ranks' time; their floors,
/// what no schedule with a flush on the same placement can beat in the same memory: the limit, or
/// else the peak. The gap, whether it is proved to be 0, and what bounds it are of the time that is
/// minimised.
inline constexpr char const* columns[] = {
    "schedule",        "ranks",          "micro_batches", "chunks",     "makespan",
    "bubble_makespan", "floor_makespan", "bubble_span",   "floor_span", "gap",
    "proved",          "bound_by",       "peak",          "limit",      "verdict"};

/// The rank that bounds the floor, and the word of floors.md for what keeps it.
inline std::string bound_of(pp::schedules::certificate const& c, pp::schedules::objective want) {
  constexpr char const* words[] = {"work", "ways", "warm-up", "last F", "turns", "area"};
  auto const& by =
      want == pp::schedules::objective::makespan ? c.floor.makespan_by : c.floor.span_by;
  return "rank " + std::to_string(by.rank) + ": " + words[int(by.why)];
}

inline std::vector<std::string> row_of(request const& r, entry const& e) {
  std::vector<std::string> row{e.name, std::to_string(r.ranks),
                               std::to_string(r.micro_batches * r.steps),
                               std::to_string(e.chunks_per_rank)};
  std::string const limit = r.limit ? decimals(*r.limit * r.ranks, 2) : "";
  if (!e.exists()) {
    row.insert(row.end(), {"", "", "", "", "", "", "", "", "", limit, e.verdict});
    return row;
  }
  auto const& when = e.numbers.when;
  pp::schedules::objective const want = r.minimised == "makespan"
                                            ? pp::schedules::objective::makespan
                                            : pp::schedules::objective::stage_local_span;
  // What needs more memory than the limit may be faster than all that does not.
  bool const is_bounded = e.table.trains && e.verdict == "ok";
  pp::schedules::certificate known;
  if (e.table.trains) known = pp::schedules::certify(e.problem, e.table, when, e.numbers.peak);
  auto const share = [&](long least) {
    double const all = double(least) * e.problem.ranks;
    return all > 0 ? std::max(0.0, 1 - double(when.total_busy()) / all) : 0.0;
  };
  double const unit = double(r.memory[0]) * double(e.parts);
  row.insert(
      row.end(),
      {std::to_string((when.makespan + e.scale / 2) / e.scale),
       decimals(when.bubble_by_makespan(), 4), decimals(share(known.floor.makespan), 4),
       decimals(when.bubble_by_stage_local_span(), 4),
       decimals(share(known.floor.stage_local_span), 4),
       is_bounded ? decimals(known.gap_share(want), 4) : "",
       is_bounded && known.proved(want) ? "yes" : "", is_bounded ? bound_of(known, want) : "",
       decimals(double(e.numbers.peak) / unit, 2), limit, e.verdict});
  return row;
}

inline std::string csv_word(std::string const& word) {
  if (word.find_first_of(",\"\n") == std::string::npos) return word;
  std::string quoted = "\"";
  for (char c : word) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Its title says how large it is and what its numbers count.
inline pp::drawings::drawing drawing_of(entry const& e) {
  std::string title = e.name + ": P = " + std::to_string(e.problem.ranks) +
                      ", M = " + std::to_string(e.problem.micro_batches / e.steps);
  if (e.steps > 1) title += ", " + std::to_string(e.steps) + " steps";
  if (e.parts > 1) title += ", " + std::to_string(e.parts) + " chunks per rank; memory in chunks";
  if (e.scale > 1) title += "; a unit of time is 1/" + std::to_string(e.scale);
  auto const when = pp::schedules::simulate(e.problem, e.table);
  auto d = pp::drawings::of_table(e.problem, e.table, when, {.title = title});
  if (e.steps == 1) pp::detail::set_floor(d, e.problem, e.table, when);
  return d;
}

/// A text of a program with the schedule as an option of a Pipeline.
inline std::string policy_of(entry const& e) {
  std::string name;
  for (char c : e.is_from_a_file ? std::string("from a file") : e.name)
    name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  std::string text = "// #include <pipe/schedule/families/from_csv.hpp>\n// " + e.name + ": " +
                     std::to_string(e.problem.ranks) + " ranks, Stages<" +
                     std::to_string(e.problem.chunks) + ">, MicroBatches<" +
                     std::to_string(e.problem.micro_batches) +
                     ">\ninline constexpr char order_of_" + name + "[] =\n";
  std::string const rows = pp::schedules::torch_csv(e.table);
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end + 1) {
    end = rows.find('\n', begin);
    bool const is_last = end + 1 >= rows.size();
    text += "    \"" + rows.substr(begin, end - begin) + "\\n\"" + (is_last ? ";\n" : "\n");
  }
  return text + "using schedule_" + name + " = pp::FromCSV<order_of_" + name + ">;\n";
}

inline std::string text_of(request const& r, std::vector<entry> const& entries) {
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
    pp::console::text_table table({std::begin(columns), std::end(columns)}, {0, 10, 11, 14});
    for (entry const& e : entries) table.add(row_of(r, e));
    return table.str();
  }
  if (r.format == "text") {
    for (entry const& e : entries) {
      if (!e.exists()) {
        text += e.name + ": " + e.verdict + "\n\n";
        continue;
      }
      text += pp::drawings::as_text(drawing_of(e), {.width = r.width, .colours = r.colours}) + "\n";
    }
    return text;
  }
  if (entries.size() != 1)
    refuse("--format " + r.format + " shows one schedule: say which with --schedule");
  entry const& e = entries.front();
  if (!e.exists()) refuse(e.name + (e.is_from_a_file ? ": " : " ") + e.verdict);
  if (r.format == "policy") return policy_of(e);
  if (r.format == "torch") return pp::schedules::torch_csv(e.table);
  if (r.format == "torch-comms")
    return pp::schedules::torch_csv(pp::schedules::communicate(e.problem, e.table));
  pp::drawings::drawing const d = drawing_of(e);
  if (r.format == "svg") return pp::drawings::as_svg(d, {.critical = true});
  if (r.format == "html") return pp::drawings::as_html(d);
  return pp::drawings::as_trace(d);
}

struct reply {
  std::string text;
  std::string complaint;  ///< why what was read from a file is no schedule; nothing if it is one
};

inline reply answer(request r) {
  r.read_name = pp::console::terminal_escaped(r.read_name);
  std::optional<pp::schedules::read_schedule> file = read_file(r);
  r.ranks = r.asked_ranks.value_or(r.ranks);
  r.micro_batches = r.asked_micro_batches.value_or(r.micro_batches);
  int const chunks = file ? 2 * (file->chunks / r.ranks) : 2;  // of a rank, replicas counted
  check(r, std::max(chunks, r.chunks));
  std::vector<entry> const entries = entries_of(r, std::move(file));
  reply found{text_of(r, entries), ""};
  for (entry const& e : entries)
    if (e.is_from_a_file && !e.exists()) found.complaint = e.name + ": " + e.verdict;
  return found;
}

}  // namespace schedules
