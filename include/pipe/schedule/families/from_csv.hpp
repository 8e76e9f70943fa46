// SPDX-License-Identifier: BSL-1.0
//
// A schedule that is a text of the program, in the CSV format of PyTorch: read and proved by the
// compiler, and run by a Pipeline like any other.
//
//     constexpr char order[] = "0F0,0F1,0B0,0B1\n"
//                              "1F0,1B0,1F1,1B1\n";
//     using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, FromCSV<order>>;
//
// Compilers bound the steps of one constant evaluation, so each line of the text is a separate
// constant. So g++ and clang++ 14 read texts of 12,288 actions, the largest tables that are proved
// at compile time, without flags.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include <pipe/base/diagnosis.hpp>
#include <pipe/base/list.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/families/torch_text.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/proved.hpp>

namespace pp {

template <auto const& Text>
struct FromCSV;

namespace wrong {
/// Where a text cannot be read, both from 1.
template <int Number>
struct AtLine;
template <int Number>
struct AtColumn;
}  // namespace wrong

namespace detail {

/// The text of a character array, without the zero that ends a string literal, or of a string_view.
template <std::size_t Size>
constexpr std::string_view text_of(char const (&text)[Size]) {
  return {text, Size - (text[Size - 1] == '\0')};
}
constexpr std::string_view text_of(std::string_view text) { return text; }

/// Calls use(begin) for each line after the first, and for the end of the text. A line ends with
/// \n, \r\n or \r.
template <class Use>
constexpr void for_each_line_begin(std::string_view text, Use use) {
  char const *const begin = text.data(), *const end = begin + text.size();
  for (char const* at = begin; at != end;) {
    while (at != end && *at != '\n' && *at != '\r') ++at;
    if (at == end) break;
    at += *at == '\r' && at + 1 != end && at[1] == '\n' ? 2 : 1;
    if (at != end) use(std::size_t(at - begin));
  }
  use(text.size());
}
/// The number of lines, of which the last may have no end.
constexpr int count_lines(std::string_view text) {
  int lines = 0;
  for_each_line_begin(text, [&](std::size_t) { ++lines; });
  return lines;
}
/// The position at which each line begins, and the end of the last line.
///
/// shape: [Lines + 1], ascending; line i is text[begins[i], begins[i + 1]), its end included
template <int Lines>
constexpr auto lines_of(std::string_view text) {
  list<std::size_t, Lines + 1> begins;
  int line = 0;
  for_each_line_begin(text, [&](std::size_t begin) { begins[++line] = begin; });
  return begins;
}
/// The most actions that a line can have: one for each cell, and one for each part of a pair. Parts
/// are separated by what may separate cells.
constexpr int most_actions_of(std::string_view line) {
  int separators = 0;
  for (char const c : line) separators += c == ',' || c == ';' || c == '\t';
  return separators + 1;
}

/// Facts of a line, or of a whole text: the sizes of the schedule, or the first fault.
///
/// law: facts of lines, added in their order, are those of the text
/// law: `ranks` counts the lines up to the last with a cell that is not empty
struct csv_facts {
  int ranks = 0, chunks = 0, micro_batches = 0;
  int longest = 0;  ///< the most actions of a rank
  bool trains = false, splits_backward = false;
  torch_format::finding found{};

  /// Adds an action of the line whose facts these are.
  constexpr void add(action const& a) {
    ++longest;
    if (a.chunk >= chunks) chunks = a.chunk + 1;
    if (a.micro_batch >= micro_batches) micro_batches = a.micro_batch + 1;
    if (a.kind != action_kind::forward) trains = true;
    if (a.kind == action_kind::backward_input || a.kind == action_kind::backward_weight)
      splits_backward = true;
  }
  /// Adds the facts of a later line, whose `ranks` is the line's number, or 0 for a line without a
  /// cell.
  constexpr void add(csv_facts const& line) {
    if (line.ranks > ranks) ranks = line.ranks;
    if (line.chunks > chunks) chunks = line.chunks;
    if (line.micro_batches > micro_batches) micro_batches = line.micro_batches;
    if (line.longest > longest) longest = line.longest;
    trains = trains || line.trains;
    splits_backward = splits_backward || line.splits_backward;
    if (found.ok()) found = line.found;
  }
};

/// " is for 4 ranks and 8 micro-batches", which follows the name of a schedule.
struct size_refusal {
  char text[64]{};
  constexpr size_refusal(csv_facts const& f) {
    char* to = text;
    auto const add = [&](std::string_view part) {
      for (char const c : part) *to++ = c;
    };
    auto const add_number = [&](int n) {
      int place = 1;
      while (n / place >= 10) place *= 10;
      for (; place > 0; place /= 10) *to++ = char('0' + n / place % 10);
    };
    add("is for ");
    add_number(f.ranks);
    add(" ranks and ");
    add_number(f.micro_batches);
    add(" micro-batches");
  }
};

/// A line's facts and actions. Each line is a constant of its own, with a compiler's whole budget
/// for a constant.
template <int Capacity>
struct csv_line {
  csv_facts facts{};
  list<action, Capacity> actions{};
};

/// The schedule of a text, as a schedule_policy. Its members are constants that depend on each
/// other: the lines, then the facts of all lines, then the rows of the table, then the placement.
///
/// needs: the text can be read, see diagnose_csv
template <auto const& Text>
struct csv_schedule {
  static constexpr std::string_view text = text_of(Text);
  static constexpr int line_count = count_lines(text);
  static constexpr auto begins = lines_of<line_count>(text);

  /// The facts and actions of line number Line, which is scanned once, in a constant evaluation of
  /// its own.
  template <int Line>
  static constexpr auto line = [](auto...) {
    constexpr std::string_view cells = text.substr(begins[Line], begins[Line + 1] - begins[Line]);
    csv_line<most_actions_of(cells)> read;
    read.facts.found = torch_format::scan(
        cells, [&] { read.facts.ranks = Line + 1; },
        [&](action const& a, torch_format::place) {
          read.actions[read.facts.longest] = a;
          read.facts.add(a);
        },
        Line + 1);
    return read;
  }();
  /// Calls use(line) for each line.
  template <class Use>
  static constexpr void for_each_line(Use use) {
    [&]<int... Line>(std::integer_sequence<int, Line...>) {
      (use(Line, line<Line>), ...);
    }(std::make_integer_sequence<int, line_count>{});
  }

  /// The facts of the whole text.
  static constexpr csv_facts facts = [](auto...) {
    csv_facts all;
    for_each_line([&](int, auto const& of) { all.add(of.facts); });
    if (all.found.ok() && all.chunks == 0) all.found.what = csv_fault::no_action;
    return all;
  }();
  /// The actions of each rank, in the order of the text.
  static constexpr auto rows = [](auto...) {
    static_rows<action, facts.ranks, facts.longest> all;
    for_each_line([&](int rank, auto const& of) {
      for (int i = 0; i < of.facts.longest; ++i) all.push(rank, of.actions[i]);
    });
    return all;
  }();
  static constexpr torch_format::best_placement best =
      torch_format::placement_of(rows, facts.chunks);
  static constexpr size_refusal refusal{facts};

  static constexpr char const* name = "from-csv";
  static constexpr placement where = best.where;
  static constexpr int chunks_per_rank = facts.chunks * replicas(where) / facts.ranks;
  static constexpr bool splits_backward = facts.splits_backward, trains = facts.trains;

  /// Why a pipeline of other sizes cannot have this schedule; null: it can.
  static constexpr char const* refuses(int ranks, int micro_batches) {
    return ranks == facts.ranks && micro_batches == facts.micro_batches ? nullptr : refusal.text;
  }
  template <class Problem, class Table>
  static constexpr void fill(Problem const&, Table& table) {
    for (int rank = 0; rank < facts.ranks; ++rank)
      for (int i = 0; i < rows.size(rank); ++i) table.push(rank, rows.at(rank, i));
  }
};

/// The diagnosis of a fault in a text.
template <auto const& Text, csv_fault What, torch_format::place At>
constexpr auto diagnosis_of_csv() {
  return diagnosis_of<wrong::schedule_is_not_readable, FromCSV<Text>, wrong::Because<What>,
                      wrong::AtLine<At.line>, wrong::AtColumn<At.column>>();
}

/// The diagnosis of a text: line and column of its first fault, both from 1. A stage on a wrong
/// rank is known as a fault only behind the whole text, as the text does not name its placement.
template <auto const& Text>
constexpr auto diagnose_csv() {
  constexpr csv_facts facts = csv_schedule<Text>::facts;
  constexpr auto best = csv_schedule<Text>::best;
  if constexpr (!facts.found.ok()) {
    return diagnosis_of_csv<Text, facts.found.what, facts.found.at>();
  } else if constexpr (best.name == nullptr || best.misplaced > 0) {
    constexpr csv_fault what =
        best.name == nullptr ? csv_fault::no_placement : csv_fault::wrong_rank;
    constexpr torch_format::place at =
        torch_format::find_misplaced(text_of(Text), facts.ranks, facts.chunks, best).at;
    return diagnosis_of_csv<Text, what, at>();
  } else {
    return std::type_identity<nothing_wrong>{};
  }
}

/// A valid schedule in place of the schedule of an unreadable text, so that one fault is one error;
/// its table does not compile either.
template <auto const& Text>
struct unreadable_schedule : OneFOneB {
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    if constexpr (requires { table.items.size(); })  // a dynamic_table
      static_assert(accepted<decltype(diagnose_csv<Text>())>::value);
    OneFOneB::fill(problem, table);
  }
};

/// The schedule of a text, or unreadable_schedule after a diagnosis.
template <auto const& Text>
using schedule_from_csv =
    std::conditional_t<is_accepted<typename decltype(diagnose_csv<Text>())::type>,
                       csv_schedule<Text>, unreadable_schedule<Text>>;

}  // namespace detail

/// The schedule of a text in PyTorch's format, see read_torch_csv: a character array or a
/// std::string_view with static storage. The text says the numbers of ranks and micro-batches.
///
/// law:   make_table has the actions that read_torch_csv reads at run time, on the same placement
/// needs: the text can be read: otherwise a one-line compile error with line, column and reason
template <auto const& Text>
struct FromCSV : detail::schedule_from_csv<Text> {
  /// Why the text cannot be read, for a Pipeline's first error.
  using diagnosis_of_text = decltype(detail::diagnose_csv<Text>());
};

}  // namespace pp
