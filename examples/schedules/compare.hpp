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
#include <pipe/schedule/catalog/torch_csv.hpp>
#include <pipe/schedule/communication.hpp>
#include <pipe/schedule/certificate.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "entries.hpp"

namespace schedules {

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

/// In stages; of ranks with several limits the least and the most.
inline std::string limit_of(entry const& e) {
  if (e.limits.empty()) return "";
  auto const [least, most] = std::minmax_element(e.limits.begin(), e.limits.end());
  return decimals(*least, 2) + (*least < *most ? "-" + decimals(*most, 2) : "");
}

inline std::vector<std::string> row_of(request const& r, entry const& e) {
  std::vector<std::string> row{e.name, std::to_string(e.problem.ranks),
                               std::to_string(e.micro_batches), std::to_string(e.chunks_per_rank)};
  std::string const limit = limit_of(e);
  if (!e.exists()) {
    row.insert(row.end(), r.lengths.empty() ? 9 : 11, "");
    row.insert(row.end(), {limit, e.verdict});
    return row;
  }
  if (e.lengths) {
    std::vector<std::string> const cells = cells_of(*e.lengths, e.table);
    row.insert(row.end(), cells.begin(), cells.end());
    row.insert(row.end(), {decimals(double(e.numbers.peak) / e.stage, 2), limit, e.verdict});
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
  row.insert(
      row.end(),
      {e.coarse > 1 ? decimals(double(when.makespan) * double(e.coarse), 0)
                    : std::to_string((when.makespan + e.scale / 2) / e.scale),
       decimals(when.bubble_by_makespan(), 4), decimals(share(known.floor.makespan), 4),
       decimals(when.bubble_by_stage_local_span(), 4),
       decimals(share(known.floor.stage_local_span), 4),
       is_bounded ? decimals(known.gap_share(want), 4) : "",
       is_bounded && known.proved(want) ? "yes" : "", is_bounded ? bound_of(known, want) : "",
       decimals(double(e.numbers.peak) / e.stage, 2), limit, e.verdict});
  return row;
}

inline std::string csv_word(std::string const& word) {
  if (word.find_first_of(",\"\n") == std::string::npos) return word;
  std::string quoted = "\"";
  for (char c : word) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// Its title says how large it is and what its numbers count.
inline pp::drawings::drawing drawing_of(request const& r, entry const& e) {
  std::string title = e.name + (e.problem_name.empty() ? "" : " of " + e.problem_name) +
                      ": P = " + std::to_string(e.problem.ranks) +
                      ", M = " + std::to_string(e.problem.micro_batches / e.steps);
  if (e.steps > 1) title += ", " + std::to_string(e.steps) + " steps";
  if (e.parts > 1) title += ", " + std::to_string(e.parts) + " chunks per rank";
  if (e.parts > 1 && e.problem_name.empty()) title += "; memory in chunks";
  if (e.scale > 1) title += "; a unit of time is 1/" + std::to_string(e.scale);
  if (e.coarse > 1) title += "; a unit of time is " + std::to_string(e.coarse);
  if (e.lengths) {
    uneven_problem const problem = problem_of_batch(r, *e.lengths);
    return pp::drawings::of_table(
        problem, e.table, pp::schedules::simulate(problem, e.table),
        {.title = title + title_of_batch(r), .note = note_of_batch(r, *e.lengths)});
  }
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

/// A line for each entry. Of several problems each begins with the name of its problem: the file,
/// or ranks x micro-batches.
inline std::string rows_text(request const& r, std::vector<entry> const& entries,
                             bool has_several_problems) {
  std::vector<std::vector<std::string>> lines{{std::begin(columns), std::end(columns)}};
  std::vector<std::size_t> left{0, 10, 11, 14};  // aligned
  if (!r.lengths.empty())
    lines[0].assign(std::begin(columns_of_lengths), std::end(columns_of_lengths)), left = {0, 16};
  for (entry const& e : entries) lines.push_back(row_of(r, e));
  if (has_several_problems) {
    lines[0].insert(lines[0].begin(), "problem");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      pp::schedules::run_time_problem const& p = entries[i].problem;
      std::string const size = std::to_string(p.ranks) + " x " +
                               std::to_string(entries[i].micro_batches / entries[i].steps);
      lines[i + 1].insert(lines[i + 1].begin(),
                          entries[i].problem_name.empty() ? size : entries[i].problem_name);
    }
    for (std::size_t& column : left) ++column;
    left.insert(left.begin(), 0);
  }
  if (r.format == "table") {
    pp::console::text_table table(lines[0], left);
    for (std::size_t i = 1; i < lines.size(); ++i) table.add(lines[i]);
    return table.str();
  }
  std::string text;
  for (std::vector<std::string> const& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) text += (i > 0 ? "," : "") + csv_word(line[i]);
    text += '\n';
  }
  return text;
}

inline std::string text_of(request const& r, std::vector<entry> const& entries,
                           bool has_several_problems) {
  if (r.format == "csv" || r.format == "table") return rows_text(r, entries, has_several_problems);
  std::string text;
  if (r.format == "text") {
    for (entry const& e : entries) {
      if (!e.exists()) {
        text += e.name + ": " + e.verdict + "\n\n";
        continue;
      }
      text +=
          pp::drawings::as_text(drawing_of(r, e), {.width = r.width, .colours = r.colours}) + "\n";
    }
    return text;
  }
  if (entries.size() != 1)
    refuse("--format " + r.format + " shows one schedule" +
           (has_several_problems ? " of one problem" : "") + ": say which with --schedule");
  entry const& e = entries.front();
  if (!e.exists()) refuse(e.name + (e.is_from_a_file ? ": " : " ") + e.verdict);
  if (r.format == "policy") return policy_of(e);
  if (r.format == "torch") return pp::schedules::torch_csv(e.table);
  if (r.format == "torch-comms")
    return pp::schedules::torch_csv(pp::schedules::communicate(e.problem, e.table));
  pp::drawings::drawing const d = drawing_of(r, e);
  if (r.format == "svg") return pp::drawings::as_svg(d, {.critical = true});
  if (r.format == "html") return pp::drawings::as_html(d);
  return pp::drawings::as_trace(d);
}

struct reply {
  std::string text;
  std::string complaint;  ///< why what was read from a file is no schedule; nothing if it is one
};

inline reply answer(request all) {
  all.read.name = pp::console::terminal_escaped(all.read.name);
  for (named_text& of : all.problem_files) of.name = pp::console::terminal_escaped(of.name);
  std::optional<pp::schedules::read_schedule> const file = read_file(all);
  std::vector<request> problems = problems_of(all, file);
  for (request& r : problems) {  // chunks of a rank, replicas counted
    int const chunks = file && r.ranks > 0 ? 2 * (file->chunks / r.ranks) : 2;
    check(r, std::max(chunks, r.chunks));
    check_lengths(r);
  }
  std::vector<entry> entries;
  for (request const& r : problems)
    for (entry& e : entries_of(r, file)) {
      if (!r.lengths.empty() && e.exists()) e.lengths = study_of(r, e.problem, e.coarse);
      entries.push_back(std::move(e));
    }
  reply found{text_of(all, entries, problems.size() > 1), ""};
  for (entry const& e : entries)
    if (e.is_from_a_file && !e.exists() && found.complaint.empty())
      found.complaint = e.name + ": " + e.verdict;
  return found;
}

}  // namespace schedules
