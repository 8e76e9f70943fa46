// SPDX-License-Identifier: BSL-1.0
#include "summary.hpp"

#include <cstdio>

namespace {

summary const* baseline_of(summary const& s, std::vector<summary> const& all) {
  for (summary const& other : all)
    if (other.of->optimizer == s.of->optimizer && other.of->schedule == baseline) return &other;
  return nullptr;
}

/// Differences of runs with the same seed, both at the best rates.
std::vector<double> differences(summary const& a, summary const& b) {
  std::vector<double> all;
  for (ended_run const* x : a.cells[std::size_t(a.best)].runs)
    for (ended_run const* y : b.cells[std::size_t(b.best)].runs)
      if (x->seed == y->seed) all.push_back(x->result.evaluation - y->result.evaluation);
  return all;
}

/// No claim without a grid whose best rate has a worse one on both sides, nor on less than two
/// seeds.
std::string verdict_on(summary const& s, summary const& base) {
  if (s.best_is_at_edge) return "no claim: best rate at the edge of the grid";
  if (base.best_is_at_edge) return "no claim: 1f1b's best rate at the edge of the grid";
  if (s.difference.count < 2) return "no claim: one seed";
  if (std::abs(s.difference.mean) <= 2 * s.difference.spread) return "within the spread";
  return s.difference.mean > 0 ? "worse" : "better";
}

std::string with_spread(char const* format, statistics const& x) {
  char text[64];
  std::snprintf(text, sizeof text, format, x.mean);
  std::string words = text;
  if (x.count < 2) return words;
  std::snprintf(text, sizeof text, " ± %.4f", x.spread);
  return words + text;
}

}  // namespace

std::vector<summary> summaries_of(std::vector<std::size_t> const& which,
                                  std::vector<double> const& factors,
                                  std::vector<ended_run> const& runs) {
  std::vector<summary> all;
  for (std::size_t a : which) {
    summary s;
    s.of = &arms()[a];
    for (double factor : factors) {
      cell c;
      c.factor = factor;
      std::vector<double> losses;
      for (ended_run const& r : runs) {
        if (r.arm != a || r.factor != factor) continue;
        c.runs.push_back(&r);
        if (r.result.diverged)
          ++c.diverged;
        else
          losses.push_back(r.result.evaluation);
      }
      c.loss = statistics(losses);
      int const here = int(s.cells.size());
      if (c.is_comparable() && (s.best < 0 || c.loss.mean < s.cells[std::size_t(s.best)].loss.mean))
        s.best = here;
      s.cells.push_back(c);
    }
    s.best_is_at_edge = s.best == 0 || s.best == int(s.cells.size()) - 1;
    all.push_back(s);
  }
  for (summary& s : all) {
    summary const* const base = baseline_of(s, all);
    if (base == &s)
      s.verdict = s.best_is_at_edge ? "best rate at the edge of the grid" : "";
    else if (base == nullptr || base->best < 0)
      s.verdict = "no claim: no run of 1f1b";
    else if (s.best < 0)
      s.verdict = "diverged at every rate";
    else {
      s.difference = statistics(differences(s, *base));
      s.verdict = verdict_on(s, *base);
    }
  }
  return all;
}

std::string words_of(cell const& c) {
  if (c.diverged > 0)
    return "diverged (" + std::to_string(c.diverged) + " of " + std::to_string(c.runs.size()) + ")";
  return c.loss.count == 0 ? "-" : with_spread("%.4f", c.loss);
}
std::string words_of_difference(summary const& s) {
  return s.difference.count == 0 ? "-" : with_spread("%+.4f", s.difference);
}
std::string short_number(double x, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, x);
  return text;
}

std::string csv_of(std::vector<ended_run> const& runs) {
  std::string text =
      "schedule,optimizer,rate_factor,learning_rate,seed,steps,tokens,training_loss,"
      "evaluation_loss,diverged\n";
  for (ended_run const& r : runs) {
    arm const& a = arms()[r.arm];
    outcome const& o = r.result;
    text += a.schedule + "," + a.optimizer + "," + short_number(r.factor, 9) + "," +
            short_number(r.factor * a.learning_rate, 9) + "," + std::to_string(r.seed) + "," +
            std::to_string(o.steps) + "," + std::to_string(o.steps * tokens_per_step) + ",";
    if (o.diverged)
      text += ",,1\n";
    else
      text += short_number(o.curve.back(), 9) + "," + short_number(o.evaluation, 9) + ",0\n";
  }
  return text;
}
