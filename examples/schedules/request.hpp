// SPDX-License-Identifier: BSL-1.0
//
// What the program `schedules` is asked, and what is refused before anything is computed: what is
// impossible, and what does not fit into the numbers that a computer counts with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <pipe/base/error.hpp>
#include <pipe/report/problem_file.hpp>
#include <pipe/schedule/catalog/catalog.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace schedules {

/// A file that has been read.
struct named_text {
  std::string name, text;
};

/// A question about one problem; or, before problems_of, about each of several.
struct request {
  std::vector<int> asked_ranks, asked_micro_batches;
  std::vector<named_text> problem_files;
  int ranks = 4, micro_batches = 8;  // unless they are asked for, or a file is read
  int chunks = 2;
  int steps = 1;  // one after the other, without a barrier
  std::vector<long> forward{1}, backward{1}, weight{1}, memory{1, 0, -1};
  std::vector<long> hop, bandwidth, bytes;  // none: 0, or those of the problem's file
  std::optional<pp::schedules::run_time_problem> problem;  // of a file
  std::string problem_name;
  long coarse = 1;                 // its times are counted in this many of its units
  std::vector<double> limit;       // of ranks times what F adds; one, or one for each rank
  std::vector<long> room;          // the same in the unit of the memory
  std::vector<std::string> names;  // none: all, or only the file that is read
  std::string searched_placement;  // none: straight, or vee for a file with several chunks per rank
  std::string minimised = "span", recomputed = "nothing";
  double effort = 1;
  std::string format = "table";
  named_text read;
  std::vector<std::string> lengths;  // of samples: LENGTH or LENGTH:SAMPLES; none: all full
  int context = 0;                   // the longest length, unless a file says it
  int samples = 1;                   // of a full micro-batch
  double scores = 0;                 // share of a full micro-batch's times that grows with squares
  std::optional<pp::detail::length_costs> length_costs;  // of the problem's file
  std::string composition = "as-they-come";              // of the mini-batch that is drawn
  int mini_batch = 0;
  int width = 100;       // of text
  bool colours = false;  // in text
};

inline constexpr int most_ranks = 1 << 14;
inline constexpr double most_actions = 2e8;  // some ten gigabytes
inline constexpr double most_sum = 4e18;     // of times or memory, in 64 bits

[[noreturn]] inline void refuse(std::string const& why) { throw pp::data_error(why); }

/// A number as short as it can be written with six digits.
inline std::string short_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", x);
  return text;
}

/// `value` with `digits` decimals.
inline std::string decimals(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

inline void check_word(char const* option, std::string const& word,
                       std::vector<std::string> const& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  std::string list;
  for (std::string const& k : known)
    list += (list.empty() ? "" : k == known.back() ? " or " : ", ") + k;
  refuse(std::string(option) + " must be " + list + ", not '" + word + "'");
}

/// A multiple of ranks times what F adds: a whole number where the product is one but for rounding.
inline double memory_limit(double multiple, int ranks, double added) {
  double const product = multiple * double(ranks) * added, nearest = std::round(product);
  return std::abs(product - nearest) <= 1e-12 * product ? nearest : std::floor(product);
}

/// The most that is added up: of a rank and a micro-batch, in time; of one link; of the memory of
/// one action of one chunk.
struct amounts {
  double work = 0, link = 0, memory = 0;
};

inline void check_counts(request const& r) {
  if (r.ranks < 1) refuse("--ranks must be at least 1, not " + std::to_string(r.ranks));
  if (r.micro_batches < 1)
    refuse("--micro-batches must be at least 1, not " + std::to_string(r.micro_batches));
  if (r.chunks < 1) refuse("--chunks must be at least 1, not " + std::to_string(r.chunks));
  if (r.steps < 1) refuse("--steps must be at least 1, not " + std::to_string(r.steps));
  if (r.steps > 1 && (r.format.substr(0, 5) == "torch" || r.format == "policy"))
    refuse("--format " + r.format + " is of one step");
}

/// The largest of the times that an option gives the ranks.
inline double largest_time(request const& r, char const* option, std::vector<long> const& t) {
  if (t.size() != 1 && t.size() != std::size_t(r.ranks))
    refuse(std::string(option) + " needs one time, or one per rank: " + std::to_string(r.ranks) +
           ", not " + std::to_string(t.size()));
  for (long x : t)
    if (x < 0) refuse(std::string(option) + " must be at least 0, not " + std::to_string(x));
  return double(*std::max_element(t.begin(), t.end()));
}

/// The largest of the numbers of links, which are counted from the rank above; the last rank's
/// leads to the first. None: 0
inline double largest_of_links(request const& r, char const* option, std::vector<long> const& all,
                               bool by_rank) {
  std::size_t const n = all.size(), p = std::size_t(r.ranks);
  if (n > 1 && n != p && (by_rank || n + 1 != p))
    refuse(std::string(option) +
           (by_rank ? " needs one number, or one per rank: "
                    : " needs one number, or one per link: ") +
           std::to_string(by_rank ? r.ranks : r.ranks - 1) + ", not " + std::to_string(n));
  for (long x : all)
    if (x < 0) refuse(std::string(option) + " must be at least 0, not " + std::to_string(x));
  return all.empty() ? 0 : double(*std::max_element(all.begin(), all.end()));
}

inline amounts amounts_of_options(request const& r) {
  amounts most;
  double const forward = largest_time(r, "--forward", r.forward);
  most.work = (r.recomputed == "nothing" ? 1 : 2) * forward +
              largest_time(r, "--backward", r.backward) + largest_time(r, "--weight", r.weight);
  for (long x : r.memory) most.memory = std::max(most.memory, std::abs(double(x)));
  return most;
}

/// The most time that the link behind a chunk of a file takes.
inline double time_of_link(request const& r, pp::schedules::chunk_cost const& cost) {
  auto const largest = [](std::vector<long> const& asked, long own) {
    return asked.empty() ? own : *std::max_element(asked.begin(), asked.end());
  };
  long rate = cost.bandwidth < 0 ? r.problem->bandwidth : cost.bandwidth;
  if (!r.bandwidth.empty()) rate = *std::min_element(r.bandwidth.begin(), r.bandwidth.end());
  double const bytes = double(largest(r.bytes, cost.bytes));
  return double(largest(r.hop, cost.hop < 0 ? r.problem->hop : cost.hop)) +
         (rate > 0 || r.bandwidth.size() > 1 ? bytes / std::max(1.0, double(rate)) : 0);
}

inline amounts amounts_of_file(request const& r) {
  amounts most;
  auto const& p = *r.problem;
  if (p.chunks % p.ranks != 0)
    refuse(r.problem_name + ": schedules have as many chunks on each rank, not " +
           std::to_string(p.chunks) + " chunks on " + std::to_string(p.ranks) + " ranks");
  for (int c = 0; c < p.chunks; ++c) {
    auto const& cost = p.cost(c);
    auto const& m = cost.memory;
    if (m.forward < 0 || m.forward + m.backward_input + m.backward_weight != 0)
      refuse(r.problem_name + ": chunk " + std::to_string(c) +
             ": the memory of F must be at least 0, and that of F, B and W must add up to 0");
    most.work = std::max(most.work, double(cost.forward) + double(cost.backward_input) +
                                        double(cost.backward_weight) + double(cost.recompute));
    most.link = std::max(most.link, time_of_link(r, cost));
    for (long x : {m.forward, m.backward_input, m.backward_weight, m.recompute})
      most.memory = std::max(most.memory, std::abs(double(x)));
  }
  most.work *= r.chunks;
  return most;
}

/// Checks the limits; `chunks`: the most of a rank. Returns the largest, in the unit of the memory.
inline double largest_limit(request const& r, int chunks, amounts const& most) {
  if (!r.limit.empty() && !r.room.empty())
    refuse("--limit and --room say the same in two units: give one of them");
  double largest = 0;
  auto const check_size = [&](char const* option, std::size_t n) {
    if (n > 1 && n != std::size_t(r.ranks))
      refuse(std::string(option) + " needs one number, or one per rank: " +
             std::to_string(r.ranks) + ", not " + std::to_string(n));
  };
  check_size("--limit", r.limit.size());
  check_size("--room", r.room.size());
  for (double x : r.limit)
    largest = std::max(largest, memory_limit(x, r.ranks, most.memory * chunks));
  for (long x : r.room) largest = std::max(largest, double(x) * chunks);
  return largest;
}

inline void check_words(request const& r) {
  check_word("--format", r.format,
             {"table", "csv", "text", "svg", "html", "trace", "torch", "torch-comms", "policy"});
  if (r.searched_placement == "bidirectional")
    refuse(
        "--placement bidirectional holds every chunk twice, which is not searched: chimera and "
        "dualpipe are such schedules");
  check_word("--placement", r.searched_placement, {"straight", "vee", "loop"});
  check_word("--recompute", r.recomputed, {"nothing", "in-backward", "ahead"});
  check_word("--minimise", r.minimised, {"span", "makespan", "period"});
  if (!(r.effort >= 0.001 && r.effort <= 1000))
    refuse("--effort must be from 0.001 to 1000, not " + short_text(r.effort));
}

/// Whether sums of times fit into 64 bits. What grows the most: all actions one after the other,
/// added up over the ranks; and what a search plans for a micro-batch alone, with room for its
/// trials.
inline bool are_countable(request const& r, int chunks, amounts const& most) {
  constexpr double trials = 1e5;
  double const p = r.ranks, m = double(r.micro_batches) * r.steps,
               alone = (most.work + 2 * most.link * chunks) / double(r.coarse);
  return p * p * m * chunks * alone <= most_sum && trials * p * chunks * alone <= most_sum;
}

/// Times of a file are counted in powers of ten of its unit where sums would be too large.
///
/// needs: no rank holds more than `chunks` chunks
inline void check(request& r, int chunks) {
  check_counts(r);
  amounts most = r.problem ? amounts_of_file(r) : amounts_of_options(r);
  double const hop = largest_of_links(r, "--hop", r.hop, false),
               bytes = largest_of_links(r, "--bytes", r.bytes, true);
  if (!r.problem) most.link += hop + bytes;
  largest_of_links(r, "--bandwidth", r.bandwidth, false);
  check_words(r);

  double const p = r.ranks, m = double(r.micro_batches) * r.steps;
  if (4 * p * m * chunks > most_actions)
    refuse("too many actions for these ranks, chunks and micro-batches: at most 200 million");
  if (r.ranks > most_ranks)
    refuse("--ranks must be at most " + std::to_string(most_ranks) + ", not " +
           std::to_string(r.ranks));

  if (r.memory[0] < 1)
    refuse("--memory: the memory of F must be at least 1, not " + std::to_string(r.memory[0]));
  while (r.problem && !are_countable(r, chunks, most)) r.coarse *= 10;
  // Times are counted in parts of their unit, one for each chunk, where they do not divide.
  if (!are_countable(r, chunks, most) || 4 * (p + m) * chunks * most.memory > most_sum ||
      largest_limit(r, chunks, most) > most_sum)
    refuse("times, memory or limit are too large to be added up");
  if (r.memory[0] + r.memory[1] + r.memory[2] != 0)
    refuse("--memory: the numbers of F, B and W must add up to 0, not " +
           std::to_string(r.memory[0] + r.memory[1] + r.memory[2]));
  if (r.problem) {  // whose chunks differ: a search says what is too little
    for (double x : r.limit)
      if (!(x > 0)) refuse("--limit must be above 0, not " + short_text(x));
    for (long x : r.room)
      if (x < 1) refuse("--room must be at least 1, not " + std::to_string(x));
    return;
  }
  double const least = double(r.memory[0]);
  for (double x : r.limit)
    if (!(memory_limit(x, r.ranks, least) >= least))
      refuse("--limit must hold one micro-batch: at least 1/" + std::to_string(r.ranks) + ", not " +
             short_text(x));
  for (long x : r.room)
    if (x < r.memory[0])
      refuse("--room must hold one micro-batch: at least " + std::to_string(r.memory[0]) +
             ", not " + std::to_string(x));
}

}  // namespace schedules
