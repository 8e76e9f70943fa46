// SPDX-License-Identifier: BSL-1.0
#include "page.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <pipe/report/amounts.hpp>

#include "../escaped.hpp"
#include "chart.hpp"

namespace {

constexpr char style[] = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #111827; --soft: #4b5563; --line: #d1d5db;
  --card: #f9fafb; --c0: #111827; --c1: #c2410c; --c2: #1d4ed8; --c3: #15803d; --c4: #9333ea; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0f1521; --ink: #e5e7eb; --soft: #a6adb9; --line: #3b4454; --card: #171f2d;
    --c0: #e5e7eb; --c1: #ff9d5c; --c2: #8ab4ff; --c3: #6fdc8c; --c4: #d6a4ff; } }
body { margin: 0 auto; padding: 20px 24px 40px; max-width: 1380px; background: var(--paper);
  color: var(--ink); font: 14px/1.5 "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; }
h2 { font-size: 16px; margin: 26px 0 6px; }
p { margin: 4px 0 8px; max-width: 100ch; color: var(--soft); }
code { overflow-wrap: anywhere; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr));
  gap: 12px; }
.chart { display: block; width: 100%; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; }
.chart text { font-size: 12px; fill: var(--soft); }
.chart .title { font-size: 14px; font-weight: bold; fill: var(--ink); }
.grid { stroke: var(--line); stroke-width: 1; fill: none; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.s4 { --c: var(--c4); }
.curve { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; }
.s1.curve { stroke-dasharray: 7 3; } .s2.curve { stroke-dasharray: 2 3; }
.s3.curve { stroke-dasharray: 9 3 2 3; } .s4.curve { stroke-dasharray: 12 4; }
.band { fill: var(--c); opacity: 0.15; }
.bar { stroke: var(--c); stroke-width: 1.4; }
.mark { fill: var(--c); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 12px; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; }
.word { text-align: left; white-space: normal; }
.best { font-weight: bold; }
#best td:nth-child(-n+2) { white-space: nowrap; }
)css";

/// The least and the greatest loss to show, with some room.
struct range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double y) { low = std::min(low, y), high = std::max(high, y); }
  bool is_empty() const { return !(low <= high); }
  double room() const { return std::max(0.05 * (high - low), 0.005); }
};

std::string marked_tokens(double x) {
  return x >= 1e6 ? short_number(x / 1e6) + "M" : x >= 1e3 ? short_number(x / 1e3) + "k" : "0";
}

/// Training loss at the best rate, mean and range over seeds. The steep beginning is cut off.
chart curves_of(std::vector<summary const*> const& all, double tokens) {
  chart c{.title = all[0]->of->optimizer + ": training loss at the best rate of each schedule",
          .x_label = "tokens",
          .y_label = "loss (nats per byte)",
          .x_marks = {},
          .x_from = 0,
          .x_to = tokens,
          .y_from = 0,
          .y_to = 1,
          .has_marks = false,
          .curves = {}};
  for (double const x : round_numbers(0, tokens)) c.x_marks.push_back({x, marked_tokens(x)});
  range shown;
  for (std::size_t i = 0; i < all.size(); ++i) {
    chart_curve curve{all[i]->of->schedule, int(i % 5), {}};
    auto const runs = all[i]->best < 0 ? std::vector<ended_run const*>{}
                                       : all[i]->cells[std::size_t(all[i]->best)].runs;
    std::size_t const points = runs.empty() ? 0 : runs[0]->result.curve.size();
    for (std::size_t k = 0; k < points; ++k) {
      range over_seeds;
      double sum = 0;
      for (ended_run const* r : runs) {
        over_seeds.add(r->result.curve[k]);
        sum += r->result.curve[k];
      }
      double const mean = sum / double(runs.size());
      curve.points.push_back(
          {(double(k) + 0.5) / double(points) * tokens, mean, over_seeds.low, over_seeds.high});
      if (5 * k >= points || points < 5) shown.add(over_seeds.low), shown.add(over_seeds.high);
    }
    c.curves.push_back(curve);
  }
  if (!shown.is_empty()) c.y_from = shown.low - shown.room(), c.y_to = shown.high + shown.room();
  return c;
}

/// Final loss by rate, mean and spread over seeds. What is a third worse than the best is cut off.
chart rates_of(std::vector<summary const*> const& all) {
  auto const& cells = all[0]->cells;
  double const first = std::log2(cells.front().factor), last = std::log2(cells.back().factor);
  chart c{.title = all[0]->of->optimizer + ": loss on held-out text after the last token, by rate",
          .x_label = "learning rate (logarithmic)",
          .y_label = "loss (nats per byte)",
          .x_marks = {},
          .x_from = first - 0.3,
          .x_to = last + 0.3,
          .y_from = 0,
          .y_to = 1,
          .has_marks = true,
          .curves = {}};
  for (cell const& k : cells)
    c.x_marks.push_back({std::log2(k.factor), short_number(k.factor * all[0]->of->learning_rate)});
  range shown;
  for (std::size_t i = 0; i < all.size(); ++i) {
    chart_curve curve{all[i]->of->schedule, int(i % 5), {}};
    for (cell const& k : all[i]->cells) {
      if (!k.is_comparable()) continue;
      double const spread = k.loss.count > 1 ? k.loss.spread : 0;
      curve.points.push_back(
          {std::log2(k.factor), k.loss.mean, k.loss.mean - spread, k.loss.mean + spread});
      shown.add(k.loss.mean - spread), shown.add(k.loss.mean + spread);
    }
    c.curves.push_back(curve);
  }
  if (shown.is_empty()) return c;
  shown.high = std::min(shown.high, 1.33 * shown.low);
  c.y_from = shown.low - shown.room(), c.y_to = shown.high + shown.room();
  return c;
}

std::string tag(char const* name, char const* of_class, std::string const& words) {
  return std::string("<") + name +
         (*of_class != 0 ? std::string(" class=\"") + of_class + "\"" : "") + ">" + escaped(words) +
         "</" + name + ">";
}

std::string table_of_best(std::vector<summary> const& all) {
  std::string t = "<div class=\"wide\"><table id=\"best\"><thead><tr>";
  for (char const* head : {"optimizer", "schedule", "age of weights"}) t += tag("th", "word", head);
  for (char const* head : {"versions", "best rate", "loss", "to 1f1b"}) t += tag("th", "", head);
  t += tag("th", "word", "what may be said") + "</tr></thead><tbody>\n";
  for (summary const& s : all) {
    cell const* const best = s.best < 0 ? nullptr : &s.cells[std::size_t(s.best)];
    t += "<tr>" + tag("td", "word", s.of->optimizer) + tag("td", "word", s.of->schedule) +
         tag("td", "word", s.of->staleness) + tag("td", "", std::to_string(s.of->versions)) +
         tag("td", "", best == nullptr ? "-" : short_number(best->factor * s.of->learning_rate)) +
         tag("td", "best", best == nullptr ? "-" : words_of(*best)) +
         tag("td", "", words_of_difference(s)) + tag("td", "word", s.verdict) + "</tr>\n";
  }
  return t + "</tbody></table></div>\n";
}

/// All rates of one optimizer.
std::string table_of_rates(std::vector<summary const*> const& all) {
  arm const& first = *all[0]->of;
  std::string t = "<div class=\"wide\"><table class=\"rates\" id=\"rates-" +
                  escaped(first.optimizer) + "\"><thead><tr>" + tag("th", "word", "schedule");
  for (cell const& c : all[0]->cells)
    t += tag("th", "", "rate " + short_number(c.factor * first.learning_rate));
  t += "</tr></thead><tbody>\n";
  for (summary const* s : all) {
    t += "<tr>" + tag("td", "word", s->of->schedule);
    for (std::size_t i = 0; i < s->cells.size(); ++i)
      t += tag("td", int(i) == s->best ? "best" : "", words_of(s->cells[i]));
    t += "</tr>\n";
  }
  return t + "</tbody></table></div>\n";
}

}  // namespace

std::string page_of(page_words const& w, std::vector<summary> const& all) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width\"/>"
      "<title>Staleness</title><style>";
  page += style;
  long const tokens = w.steps * tokens_per_step;
  page += "</style></head><body>\n<h1>Training with weights of different ages</h1>\n<p>" +
          escaped("A byte-level GPT of " + pp::console::readable_count(all[0].of->parameters) +
                  " parameters on " + std::to_string(stages) + " stages learns " + w.text + ": " +
                  pp::console::readable_count(tokens) + " tokens a run, in " +
                  pp::console::readable_count(w.steps) + " updates of " +
                  std::to_string(tokens_per_step) + " tokens; " + std::to_string(w.seeds) +
                  (w.seeds == 1 ? " seed" : " seeds") + "; " + std::to_string(w.runs) + " of " +
                  std::to_string(w.planned) + " runs ended.") +
          "</p>\n<p><code>" + escaped(w.command) + "</code></p>\n";
  page += "<h2>At the best rate of each schedule</h2>\n" + table_of_best(all);
  page +=
      "<p>Loss: on held-out text after the last step, in nats per byte; mean ± spread, the sample "
      "standard deviation over seeds. Difference to 1f1b: of runs with the same seed, which have "
      "the same initial weights and text, both at their own best rate. A difference of at most "
      "twice its spread is within the spread; of few seeds the spread is itself a rough number. "
      "Nothing is claimed where a best rate is at the edge of the grid. Versions: copies of the "
      "weights on the first stage.</p>\n";
  std::vector<std::string> seen;
  int number = 0;
  for (summary const& s : all) {
    if (std::find(seen.begin(), seen.end(), s.of->optimizer) != seen.end()) continue;
    seen.push_back(s.of->optimizer);
    std::vector<summary const*> same;
    for (summary const& other : all)
      if (other.of->optimizer == s.of->optimizer) same.push_back(&other);
    page += "<h2>" + escaped(s.of->optimizer) + "</h2>\n<div class=\"charts\">\n" +
            svg_of(curves_of(same, double(tokens)), number) + svg_of(rates_of(same), number + 1) +
            "</div>\n" + table_of_rates(same);
    number += 2;
  }
  page +=
      "<p>Curves: mean of the training loss over seeds, with a band from the least to the "
      "greatest; "
      "what is above the loss after a fifth of the run is cut off. By rate: bars are the spread; "
      "what is a third worse than the best is cut off.</p>\n</body></html>\n";
  return page;
}
