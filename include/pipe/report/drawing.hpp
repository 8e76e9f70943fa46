// SPDX-License-Identifier: BSL-1.0
//
// A schedule's drawing as a plain value: actions and their times, memory, transfers, and the
// critical path. Predictions and measurements are both drawings, so every output format serves both
// (timeline.hpp, svg.hpp, html.hpp, trace.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <pipe/report/amounts.hpp>
#include <pipe/report/row_name.hpp>
#include <pipe/schedule/certificate.hpp>
#include <pipe/schedule/critical_path.hpp>
#include <pipe/schedule/families/repeated.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/simulate.hpp>

namespace pp {

namespace detail {

/// An action and its times.
///
/// units: the drawing's time unit, from its start
struct drawn_action {
  action what{};
  long start = 0, end = 0;
  int shade = 0;          ///< number of its chunk on the rank, from 0; or of its direction
  bool critical = false;  ///< on the critical path
};

/// A part of an action, such as a kernel.
struct drawn_detail {
  std::string name;
  long start = 0, end = 0;
};

/// A step of a memory curve: `live` is in use from `time` to the next point, and nothing is in use
/// before the first point.
struct memory_point {
  long time = 0, live = 0;
};

/// A row of a drawing: the actions of a rank, their parts, and the rank's memory.
struct drawn_rank {
  std::vector<drawn_action> actions;  ///< in order, without overlap
  std::vector<drawn_detail> details;  ///< in order, each inside an action
  std::vector<memory_point> memory;   ///< in ascending order of time
  long peak_memory = 0;

  /// Sum of the durations of the rank's actions.
  long busy() const {
    long sum = 0;
    for (drawn_action const& a : actions) sum += a.end - a.start;
    return sum;
  }
};

/// A transfer of a value or a gradient between ranks: from the end of the action that makes it, or
/// (measured) shortly before, to the start of the action that reads it. `from` and `to` are
/// positions of actions on their ranks.
struct drawn_transfer {
  int from_rank = 0, from = 0;
  int to_rank = 0, to = 0;
};

/// Title and units of a drawing, and a note at the end of its summary. Amounts without a unit are
/// shown as plain numbers.
struct drawing_words {
  std::string title{};
  std::string time_unit{};    ///< such as "ns"
  std::string memory_unit{};  ///< such as "B"
  std::string note{};
};

}  // namespace detail

namespace drawings {

/// A drawing of a schedule, planned or measured, independent of the output format.
struct drawing {
  detail::drawing_words words;
  bool complete = true;  ///< false: it ends in a deadlock
  long makespan = 0;
  double bubble_by_makespan = 0, bubble_by_stage_local_span = 0;
  std::vector<detail::drawn_rank> ranks;  ///< of all replicas, those of the first one first
  std::vector<detail::drawn_transfer> transfers;
  /// The makespan that no order beats in this memory, and what keeps its rank; 0: not known.
  schedules::floor_bound floor{};
  int steps = 1;         ///< of training, which overlap
  int replicas = 1;      ///< each has as many ranks
  int processes = 1;     ///< whose clocks measured the times
  long clock_error = 0;  ///< largest error of a time in one process against a time in another

  /// The action of a rank at a position. Throws pp::error if there is none.
  detail::drawn_action const& at(int rank, int position) const {
    if (rank < 0 || std::size_t(rank) >= ranks.size() || position < 0 ||
        std::size_t(position) >= ranks[std::size_t(rank)].actions.size())
      detail::throw_error<error>(
          {"the drawing of ", ranks.size(), " ranks has no action ", position, " of rank ", rank});
    return ranks[static_cast<std::size_t>(rank)].actions[static_cast<std::size_t>(position)];
  }
  /// The time at which the result of an action is complete: the end of the action, or of the pair
  /// that the action is in.
  long ready(int rank, int position) const {
    detail::drawn_action const& a = at(rank, position);
    bool const in_pair =
        a.what.with_next && std::size_t(position) + 1 < ranks[std::size_t(rank)].actions.size();
    return in_pair ? at(rank, position + 1).end : a.end;
  }
  /// The name of a row: "rank 3", and of which replica if there are several.
  std::string name_of(std::size_t row) const {
    return detail::name_of_row(row, ranks.size(), replicas);
  }
  /// The largest peak of any rank.
  long peak_memory() const {
    long peak = 0;
    for (detail::drawn_rank const& r : ranks) peak = std::max(peak, r.peak_memory);
    return peak;
  }
};

}  // namespace drawings

namespace detail {

using namespace drawings;

/// An amount with a readable unit: 1250000 "ns" -> "1.25 ms", 1536 "B" -> "1.5 KiB", 2000000 "FLOP"
/// -> "2.00 MFLOP".
inline std::string readable_amount(long amount, std::string const& unit) {
  if (unit == "B") return amount == 0 ? "0 B" : readable_bytes(amount);
  if (unit.empty()) return readable_count(amount);
  bool const is_time = unit == "ns";
  char const* const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  char const* const times[] = {"ns", "µs", "ms", "s"};
  double value = double(amount);
  int power = 0;
  for (; std::abs(value) >= 999.5 && power < (is_time ? 3 : 6); ++power) value /= 1000;
  // From 9.995 and 99.95 on, rounding to the shown digits gives 10.00 and 100.0.
  int const digits = power == 0 ? 0 : std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return readable_real(value, digits) + " " + (is_time ? times[power] : prefixes[power] + unit);
}

/// The reason of a floor, in words about its rank.
inline char const* describe(floor_reason why) {
  constexpr char const* sentences[] = {
      "its work, and the way to it",
      "its F and B, and the way to it and back",
      "the Fs that its memory holds before its first B",
      "what its memory holds after its last F",
      "the micro-batches that its memory holds at once",
      "its memory over time",
  };
  return sentences[static_cast<int>(why)];
}

/// Sets the floor of a drawing of a table that trains, if it has a certificate.
template <pipeline_problem Problem, action_table Table, class Rows>
void set_floor(drawing& d, Problem const& problem, Table const& table, timeline<Rows> const& when) {
  if constexpr (!is_uneven<Problem> &&
                std::is_same_v<std::remove_cvref_t<decltype(table.where)>, placement>)
    if (table.trains && when.complete) d.floor = certify(problem, table, when).floor.makespan_by;
}

/// Makespan, bubbles, the error of clocks and the note in one line. Both definitions of bubble are
/// named, because the literature uses either.
inline std::string summary_of(drawing const& d) {
  return (d.complete ? "" : "deadlock at ") +
         ("makespan " + readable_amount(d.makespan, d.words.time_unit)) + ", bubble " +
         readable_percent(d.bubble_by_makespan) + " of the makespan, " +
         readable_percent(d.bubble_by_stage_local_span) + " of the stage-local span, peak memory " +
         readable_amount(d.peak_memory(), d.words.memory_unit) +
         (d.floor.time == 0
              ? ""
              : ", no order in this memory ends before " +
                    readable_amount(d.floor.time, d.words.time_unit) + " (rank " +
                    std::to_string(d.floor.rank) + ": " + describe(d.floor.why) + ")") +
         (d.processes == 1 ? ""
                           : ", times of " + std::to_string(d.processes) + " processes within " +
                                 readable_amount(d.clock_error, d.words.time_unit)) +
         (d.words.note.empty() ? "" : ", " + d.words.note);
}

/// An action in words: "F of micro-batch 3, chunk 1".
inline std::string name_of_action(action const& a) {
  return std::string(short_name(a.kind)) + " of micro-batch " + std::to_string(a.micro_batch) +
         ", chunk " + std::to_string(a.chunk);
}

/// Index of a drawing's actions by chunk and micro-batch, to find the producer of each value.
class sources {
 public:
  sources(drawing const& d, int chunks, int micro_batches)
      : chunks_(chunks), micro_batches_(micro_batches),
        made_(static_cast<std::size_t>(chunks) * static_cast<std::size_t>(micro_batches)) {
    for (std::size_t rank = 0; rank < d.ranks.size(); ++rank)
      for (std::size_t i = 0; i < d.ranks[rank].actions.size(); ++i) {
        action const& a = d.ranks[rank].actions[i].what;
        action_place const here{static_cast<int>(rank), static_cast<int>(i)};
        results& made = made_[index_of(a.chunk, a.micro_batch)];
        if (a.kind == action_kind::forward) made.output = here;
        if (makes_input_gradient(a.kind)) made.input_gradient = here;
      }
  }

  /// The action of a neighbouring chunk whose result `a` reads.
  action_place of(action const& a) const {
    bool const is_forward = a.kind == action_kind::forward;
    int const chunk = is_forward ? a.chunk - 1 : a.chunk + 1;
    if (!(is_forward || makes_input_gradient(a.kind)) || chunk < 0 || chunk >= chunks_) return {};
    results const& made = made_[index_of(chunk, a.micro_batch)];
    return is_forward ? made.output : made.input_gradient;
  }

 private:
  /// The positions of the actions that make a chunk's two results for a micro-batch.
  struct results {
    action_place output, input_gradient;
  };
  std::size_t index_of(int chunk, int micro_batch) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(micro_batch);
  }

  int chunks_, micro_batches_;
  // by chunk, then by micro-batch
  std::vector<results> made_;
};

}  // namespace detail

namespace drawings {

/// The drawing of a table with the times of a timeline, simulated or measured.
///
/// law:    the critical actions are those of for_each_critical
/// needs:  check_shape and check_complete (missing actions are allowed); hop times in the
///         timeline's unit
/// throws: pp::error for an action that does not exist, or a timeline of another table
template <schedules::pipeline_problem Problem, detail::action_table Table, class Rows>
drawing of_table(Problem const& problem, Table const& table, schedules::timeline<Rows> const& when,
                 detail::drawing_words words = {}) {
  detail::require_actions(problem, table, detail::unbounded_slots{});
  detail::require_spans(table, when);
  drawing d;
  d.words = std::move(words);
  d.complete = when.complete;
  d.makespan = when.makespan;
  d.bubble_by_makespan = when.bubble_by_makespan();
  d.bubble_by_stage_local_span = when.bubble_by_stage_local_span();
  for (int rank = 0; rank < table.ranks(); ++rank) {
    detail::drawn_rank& row = d.ranks.emplace_back();
    // Adds one point per time, and none where nothing changes.
    auto const live_from = [&row](long time, long live) {
      bool const at_once = !row.memory.empty() && row.memory.back().time == time;
      if (at_once) row.memory.pop_back();
      if (live != (row.memory.empty() ? 0 : row.memory.back().live))
        row.memory.push_back({time, live});
    };
    int const count = when.spans.size(rank);  // less than the table's after a deadlock
    detail::for_each_memory(problem, table, rank, [&](int i, long live, long after) {
      if (i >= count) return;
      schedules::action const a = table.at(rank, i);
      schedules::time_span const span = when.spans.at(rank, i);
      int const copies = replicas(table.where, a.chunk),
                shade = copies > 1 ? a.micro_batch % copies : a.chunk / problem.ranks;
      row.actions.push_back({a, span.start, span.end, shade, false});
      row.peak_memory = std::max(row.peak_memory, live);
      live_from(span.start, live);
      live_from(span.end, after);
    });
  }
  auto const made = detail::sources(d, problem.chunks, problem.micro_batches);
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (int i = 0; i < when.spans.size(rank); ++i)
      if (auto const from = made.of(table.at(rank, i)); from.rank >= 0 && from.rank != rank)
        d.transfers.push_back({from.rank, from.position, rank, i});
  auto const mark = [&d](int rank, int position) {
    d.ranks[static_cast<std::size_t>(rank)].actions[static_cast<std::size_t>(position)].critical =
        true;
  };
  detail::for_each_critical(problem, table, when, mark,
                            [&](schedules::action const& a) { return made.of(a); });
  return d;
}

/// The drawing of several steps of a table, simulated, without a barrier between them. An update
/// ends a step of a rank, which is as many runs of the table as it has accumulations.
///
/// throws: pp::error as repeated() does
template <schedules::pipeline_problem Problem, detail::action_table Table>
drawing of_steps(Problem const& problem, Table const& table, int steps,
                 detail::drawing_words words = {}, int accumulations = 1) {
  auto const run = schedules::repeated(problem, table, steps, accumulations);
  Problem const all = schedules::repeated(problem, steps * accumulations);
  drawing d = of_table(all, run, schedules::simulate(all, run), std::move(words));
  d.steps = steps;
  return d;
}

}  // namespace drawings

}  // namespace pp
