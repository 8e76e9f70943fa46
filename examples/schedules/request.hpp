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
#include <string>
#include <string_view>
#include <vector>

namespace schedules {

struct request {
  std::optional<int> asked_ranks, asked_micro_batches;
  int ranks = 4, micro_batches = 8;  // unless they are asked for, or a file is read
  int chunks = 2;
  int steps = 1;  // one after the other, without a barrier
  std::vector<long> forward{1}, backward{1}, weight{1}, memory{1, 0, -1};
  std::vector<long> hop{0}, bandwidth{0}, bytes{0};
  std::optional<double> limit;     // of ranks times what F adds
  std::vector<std::string> names;  // none: all, or only the file that is read
  std::string searched_placement = "straight", minimised = "span", recomputed = "nothing";
  std::string format = "table";
  std::string read_name, read_text;
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

inline void check_word(char const* option, std::string const& word,
                       std::vector<std::string> const& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  std::string list;
  for (std::string const& k : known)
    list += (list.empty() ? "" : k == known.back() ? " or " : ", ") + k;
  refuse(std::string(option) + " must be " + list + ", not '" + word + "'");
}

/// The most memory of a rank that holds that number of parts, in the unit of --memory: a whole
/// number where the product is one but for rounding.
inline double memory_limit(request const& r, int parts) {
  double const product = *r.limit * double(r.ranks) * double(r.memory[0]) * parts,
               nearest = std::round(product);
  return std::abs(product - nearest) <= 1e-12 * product ? nearest : std::floor(product);
}

/// needs: no rank holds more than `chunks` chunks
inline void check(request const& r, int chunks) {
  if (r.ranks < 1) refuse("--ranks must be at least 1, not " + std::to_string(r.ranks));
  if (r.micro_batches < 1)
    refuse("--micro-batches must be at least 1, not " + std::to_string(r.micro_batches));
  if (r.chunks < 1) refuse("--chunks must be at least 1, not " + std::to_string(r.chunks));
  if (r.steps < 1) refuse("--steps must be at least 1, not " + std::to_string(r.steps));
  if (r.steps > 1 && (r.format.substr(0, 5) == "torch" || r.format == "policy"))
    refuse("--format " + r.format + " is of one step");
  auto const times = [&](char const* option, std::vector<long> const& t) {
    if (t.size() != 1 && t.size() != std::size_t(r.ranks))
      refuse(std::string(option) + " needs one time, or one per rank: " + std::to_string(r.ranks) +
             ", not " + std::to_string(t.size()));
    for (long x : t)
      if (x < 0) refuse(std::string(option) + " must be at least 0, not " + std::to_string(x));
    return double(*std::max_element(t.begin(), t.end()));
  };
  double const forward = times("--forward", r.forward),
               work = (r.recomputed == "nothing" ? 1 : 2) * forward +
                      times("--backward", r.backward) + times("--weight", r.weight);
  // Links are counted from the rank above; the last rank's leads to the first.
  auto const of_links = [&](char const* option, std::vector<long> const& all, bool by_rank) {
    std::size_t const n = all.size(), p = std::size_t(r.ranks);
    if (n != 1 && n != p && (by_rank || n + 1 != p))
      refuse(std::string(option) +
             (by_rank ? " needs one number, or one per rank: "
                      : " needs one number, or one per link: ") +
             std::to_string(by_rank ? r.ranks : r.ranks - 1) + ", not " + std::to_string(n));
    for (long x : all)
      if (x < 0) refuse(std::string(option) + " must be at least 0, not " + std::to_string(x));
    return double(*std::max_element(all.begin(), all.end()));
  };
  double const slowest = of_links("--hop", r.hop, false) + of_links("--bytes", r.bytes, true);
  of_links("--bandwidth", r.bandwidth, false);
  check_word("--format", r.format,
             {"table", "csv", "text", "svg", "html", "trace", "torch", "torch-comms", "policy"});
  check_word("--placement", r.searched_placement, {"straight", "vee"});
  check_word("--recompute", r.recomputed, {"nothing", "in-backward", "ahead"});
  check_word("--minimise", r.minimised, {"span", "makespan", "period"});

  double const p = r.ranks, m = double(r.micro_batches) * r.steps;
  if (4 * p * m * chunks > most_actions)
    refuse("too many actions for these ranks, chunks and micro-batches: at most 200 million");
  if (r.ranks > most_ranks)
    refuse("--ranks must be at most " + std::to_string(most_ranks) + ", not " +
           std::to_string(r.ranks));

  // Times are counted in parts of their unit, one for each chunk, where they do not divide. What
  // grows the most: all actions one after the other, added up over the ranks; and what a search
  // plans for a micro-batch alone, with room for its trials.
  if (r.memory[0] < 1)
    refuse("--memory: the memory of F must be at least 1, not " + std::to_string(r.memory[0]));
  constexpr double trials = 1e5;
  double const alone = work + 2 * slowest * chunks;
  double added = 0;
  for (long x : r.memory) added = std::max(added, std::abs(double(x)));
  if (p * p * m * chunks * alone > most_sum || trials * p * chunks * alone > most_sum ||
      4 * (p + m) * chunks * added > most_sum || (r.limit && memory_limit(r, chunks) > most_sum))
    refuse("times, memory or limit are too large to be added up");
  if (r.memory[0] + r.memory[1] + r.memory[2] != 0)
    refuse("--memory: the numbers of F, B and W must add up to 0, not " +
           std::to_string(r.memory[0] + r.memory[1] + r.memory[2]));
  if (r.limit && !(memory_limit(r, 1) >= double(r.memory[0])))
    refuse("--limit must hold one micro-batch: at least 1/" + std::to_string(r.ranks) + ", not " +
           short_text(*r.limit));
}

}  // namespace schedules
