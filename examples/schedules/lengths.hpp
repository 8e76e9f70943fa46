// SPDX-License-Identifier: BSL-1.0
//
// Samples of several lengths in the program `schedules`: what each schedule waits for micro-batches
// that are unequal, by the composition of mini-batches.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <pipe/data/compositions.hpp>
#include <pipe/plan/epoch_times.hpp>
#include <pipe/report/lengths_drawing.hpp>
#include <pipe/schedule/uneven.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "request.hpp"

namespace schedules {

using run_time_problem = pp::schedules::run_time_problem;
using uneven_problem = pp::schedules::uneven_problem<run_time_problem>;

/// The whole number that a word is.
inline int number_of(std::string_view word, std::string const& all) {
  int value = 0;
  auto const [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (fault != std::errc{} || end != word.data() + word.size() || value < 0)
    refuse("--lengths: expected LENGTH or LENGTH:SAMPLES, whole numbers, not '" + all + "'");
  return value;
}

/// The length of each sample. words: LENGTH, or LENGTH:SAMPLES
inline std::vector<int> lengths_of(std::vector<std::string> const& words) {
  constexpr std::size_t most_samples = 10'000'000;
  std::vector<int> lengths;
  for (std::string const& word : words) {
    std::size_t const colon = word.find(':');
    int const length = number_of(std::string_view(word).substr(0, colon), word);
    int const samples =
        colon == word.npos ? 1 : number_of(std::string_view(word).substr(colon + 1), word);
    if (lengths.size() + std::size_t(samples) > most_samples)
      refuse("--lengths: more than " + std::to_string(most_samples) + " samples");
    lengths.insert(lengths.end(), std::size_t(samples), length);
  }
  if (lengths.empty()) refuse("--lengths: expected the length of at least one sample");
  return lengths;
}

/// The composition that a word of --composition names.
inline pp::detail::composition composition_of(std::string const& word) {
  using enum pp::detail::composition;
  return word == "by-length"   ? by_length
         : word == "by-tokens" ? by_tokens
         : word == "packed"    ? packed
                               : as_they_come;
}

/// The room of a micro-batch, from the problem's file or from the options.
inline pp::detail::composition_room room_of(request const& r, std::vector<int> const& lengths) {
  pp::detail::composition_room room;
  if (r.length_costs) {
    room = r.length_costs->room;
  } else {
    int const longest = *std::max_element(lengths.begin(), lengths.end()),
              context = std::max(1, r.context > 0 ? r.context : longest);
    constexpr long most_rows = 1L << 27;
    if (long(context) * r.samples > most_rows)
      refuse("--context and --micro-batch-size: a micro-batch has at most " +
             std::to_string(most_rows) + " rows");
    room = {context, r.samples, 1, 1, {context * r.samples, 8 * r.samples, 1}};
  }
  room.micro_batches = r.micro_batches;
  room.accumulations = 1;
  for (int const n : lengths)
    if (n > room.context)
      refuse("--lengths: " + std::to_string(n) + " is above the context of " +
             std::to_string(room.context));
  return room;
}

/// Samples of several lengths: their problem, of full micro-batches, and what these have room for.
struct length_study {
  uneven_problem full;
  pp::detail::composition_room room;
  std::vector<int> lengths;
};

/// The study of a problem. Times are counted in parts of their unit, so that those of short samples
/// are more than a few units. coarse: the problem's times are this many times fewer than those of
/// its file
inline length_study study_of(request const& r, run_time_problem const& problem, long coarse) {
  length_study study;
  study.lengths = lengths_of(r.lengths);
  study.room = room_of(r, study.lengths);
  study.full = {problem, problem, problem, {}};
  uneven_problem& p = study.full;
  long largest = 1;
  for (auto const& c : problem.costs)
    largest = std::max({largest, c.forward, c.backward_input, c.backward_weight});
  long const fine = std::max(1L, 1'000'000 / largest);
  p.hop *= fine;
  for (std::size_t i = 0; i < p.costs.size(); ++i) {
    auto &c = p.costs[i], &square = p.squares.costs[i], &fixed = p.fixed.costs[i];
    for (long* time : {&c.forward, &c.backward_input, &c.backward_weight, &c.hidden}) *time *= fine;
    for (long* time : {&c.recompute, &c.hop})
      if (*time > 0) *time *= fine;
    c.bytes *= fine;
    square = r.length_costs ? r.length_costs->squares[i] : c;
    for (long* time :
         {&square.forward, &square.backward_input, &square.backward_weight, &square.recompute})
      if (*time > 0)  // R without a time of its own takes that of F
        *time = r.length_costs ? *time / coarse * fine : std::lround(double(*time) * r.scores);
    fixed = pp::schedules::chunk_cost{0, 0, 0};
    fixed.recompute = 0;
  }
  return study;
}

inline void check_lengths(request const& r) {
  if (r.lengths.empty()) return;
  if (r.steps > 1) refuse("--lengths is of one step");
  if (r.samples < 1)
    refuse("--micro-batch-size must be at least 1, not " + std::to_string(r.samples));
  if (r.context < 0) refuse("--context must be at least 1, not " + std::to_string(r.context));
  if (!(r.scores >= 0 && r.scores <= 1))
    refuse("--scores must be from 0 to 1, not " + short_text(r.scores));
  check_word("--composition", r.composition, {"as-they-come", "by-length", "by-tokens", "packed"});
  if (r.problem && !r.length_costs)
    refuse(r.problem_name + ": it says nothing of lengths, as its pipeline has no Lengths");
  room_of(r, lengths_of(r.lengths));
}

/// The columns of a table with --lengths. Bubbles are of the makespans of an epoch, times those of
/// the epoch over that of samples which are padded to the context.
inline constexpr char const* columns_of_lengths[] = {
    "schedule",      "ranks",          "micro_batches",    "chunks",           "padding",
    "bubble_padded", "bubble_as_come", "bubble_by_length", "bubble_by_tokens", "bubble_packed",
    "time_as_come",  "time_by_length", "time_by_tokens",   "time_packed",      "peak",
    "limit",         "verdict"};

/// The cells of a schedule's row from the padding to the last time.
template <class Table>
std::vector<std::string> cells_of(length_study const& of, Table const& table) {
  using enum pp::detail::composition;
  auto const epoch = [&](std::vector<int> const& lengths, pp::detail::composition way) {
    return pp::detail::simulate_epoch(of.full, table, lengths, of.room, way);
  };
  auto const padded = epoch(std::vector<int>(of.lengths.size(), of.room.context), as_they_come);
  pp::detail::epoch_times const all[] = {epoch(of.lengths, as_they_come),
                                         epoch(of.lengths, by_length), epoch(of.lengths, by_tokens),
                                         epoch(of.lengths, packed)};
  std::vector<std::string> cells{
      decimals(pp::detail::count_padding(of.lengths, of.room).of_context(), 4),
      decimals(padded.bubble(table.ranks()), 4)};
  for (auto const& t : all) cells.push_back(decimals(t.bubble(table.ranks()), 4));
  for (auto const& t : all) cells.push_back(decimals(t.makespan / padded.makespan, 4));
  return cells;
}

/// The problem of one mini-batch.
inline uneven_problem problem_of_batch(request const& r, length_study const& of) {
  auto const epoch = pp::detail::compose(of.lengths, of.room, composition_of(r.composition));
  if (r.mini_batch < 0 || std::size_t(r.mini_batch) >= epoch.size())
    refuse("--mini-batch must be from 0 to " + std::to_string(epoch.size() - 1) + ", not " +
           std::to_string(r.mini_batch));
  auto const loads = pp::detail::loads_of(epoch, of.lengths, of.room);
  auto const first = loads.begin() + long(r.mini_batch) * of.room.micro_batches;
  uneven_problem problem = of.full;
  problem.loads.assign(first, first + of.room.micro_batches);
  return problem;
}

/// The padding of its samples.
inline std::string note_of_batch(request const& r, length_study const& of) {
  auto const epoch = pp::detail::compose(of.lengths, of.room, composition_of(r.composition));
  return pp::detail::padding_note(pp::detail::count_padding(
      pp::detail::lengths_of_batch(epoch, std::size_t(r.mini_batch), of.lengths), of.room));
}

/// What the title of its drawing says.
inline std::string title_of_batch(request const& r) {
  return "; mini-batch " + std::to_string(r.mini_batch) + ", samples " +
         (r.composition == "as-they-come" ? "as they come"
          : r.composition == "by-length"  ? "by length"
          : r.composition == "by-tokens"  ? "by tokens"
                                          : "packed");
}

}  // namespace schedules
