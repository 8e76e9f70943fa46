// SPDX-License-Identifier: BSL-1.0
#include "page.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <utility>

#include <pipe/report/amounts.hpp>

#include "../escaped.hpp"

namespace {

constexpr std::size_t most_pictures = 240, most_pairs = 20;

constexpr char style[] = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #111827; --soft: #4b5563; --line: #d1d5db;
  --card: #f9fafb; --bar: #c2410c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0f1521; --ink: #e5e7eb; --soft: #a6adb9; --line: #3b4454; --card: #171f2d;
    --bar: #ff9d5c; } }
body { margin: 0 auto; padding: 20px 24px 40px; max-width: 1380px; background: var(--paper);
  color: var(--ink); font: 14px/1.5 "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; }
h2 { font-size: 16px; margin: 26px 0 8px; }
p { margin: 4px 0 8px; max-width: 100ch; color: var(--soft); }
code { overflow-wrap: anywhere; }
.classes, .pairs, .wrong { display: flex; flex-wrap: wrap; gap: 8px; }
.class { display: flex; flex-direction: column; align-items: center; width: 34px; }
.tall { height: 80px; width: 14px; display: flex; align-items: end; background: var(--card);
  border: 1px solid var(--line); }
.bar { width: 100%; background: var(--bar); }
.class b { font-size: 13px; }
.class span { font-size: 10px; color: var(--soft); }
.pair { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 4px 10px; }
figure { margin: 0; padding: 6px; width: 104px; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
figure img { display: block; width: 104px; height: 104px; image-rendering: pixelated; }
figcaption { font-size: 12px; line-height: 1.35; margin-top: 4px; overflow-wrap: anywhere; }
figcaption span { color: var(--soft); font-size: 11px; }
)css";

/// The bytes as base64 text.
std::string base64(std::string const& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? digits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

void append_little(std::string& to, std::uint32_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) to += char(number >> (8 * i) & 255);
}

/// A picture as a file of the BMP format: rows from the bottom, blue, green, red.
std::string bitmap(pp::image_set const& set, std::size_t index) {
  std::uint32_t const height = std::uint32_t(set.height), width = std::uint32_t(set.width);
  std::uint32_t const row = (3 * width + 3) / 4 * 4;
  std::string file = "BM";
  append_little(file, 54 + row * height, 4);
  append_little(file, 0, 4);
  append_little(file, 54, 4);
  append_little(file, 40, 4);
  append_little(file, width, 4);
  append_little(file, height, 4);
  append_little(file, 1, 2);
  append_little(file, 24, 2);
  for (int i = 0; i < 6; ++i) append_little(file, 0, 4);
  for (std::uint32_t y = height; y-- > 0;) {
    for (std::uint32_t x = 0; x < width; ++x) {
      std::uint8_t const* const cell = set.pixels.data() + index * set.image_size() +
                                       (std::size_t(y) * width + x) * std::size_t(set.channels);
      for (int c = 2; c >= 0; --c) file += char(cell[set.channels == 3 ? c : 0]);
    }
    file.append(row - 3 * width, '\0');
  }
  return file;
}

std::string percent(double share) {
  char words[32];
  std::snprintf(words, sizeof words, "%.1f %%", 100 * share);
  return words;
}

/// A bar for each class, as high as the share of its pictures that got a wrong answer.
std::string classes_of(image_task const& task, trained const& t) {
  std::vector<long> wrong(task.class_names.size()), all(wrong.size());
  for (std::size_t i = 0; i < t.answers.size(); ++i) {
    std::size_t const is = std::size_t(task.test.labels[i]);
    ++all[is];
    wrong[is] += t.answers[i] != task.test.labels[i];
  }
  std::string part = "<div class=\"classes\">\n";
  for (std::size_t c = 0; c < all.size(); ++c) {
    double const share = all[c] == 0 ? 0 : double(wrong[c]) / double(all[c]);
    part += "<div class=\"class\"><div class=\"tall\"><div class=\"bar\" style=\"height:" +
            std::to_string(int(100 * share + 0.5)) + "%\"></div></div><b>" +
            escaped(task.class_names[c]) + "</b><span>" + std::to_string(wrong[c]) + "/" +
            std::to_string(all[c]) + "</span></div>\n";
  }
  return part + "</div>\n";
}

}  // namespace

double error_of(image_task const& task, trained const& t) {
  long wrong = 0;
  for (std::size_t i = 0; i < t.answers.size(); ++i) wrong += t.answers[i] != task.test.labels[i];
  return double(wrong) / double(t.answers.size());
}

std::vector<confused_pair> confused_pairs(image_task const& task, trained const& t) {
  std::map<std::pair<int, int>, int> counts;
  for (std::size_t i = 0; i < t.answers.size(); ++i)
    if (t.answers[i] != task.test.labels[i]) ++counts[{task.test.labels[i], t.answers[i]}];
  std::vector<confused_pair> pairs;
  for (auto const& [which, count] : counts) pairs.push_back({which.first, which.second, count});
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](auto const& a, auto const& b) { return a.count > b.count; });
  return pairs;
}

std::string page_of(image_task const& task, trained const& t, std::string const& command) {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < t.answers.size(); ++i)
    if (t.answers[i] != task.test.labels[i]) wrong.push_back(i);
  std::stable_sort(wrong.begin(), wrong.end(),
                   [&](std::size_t a, std::size_t b) { return t.chances[a] > t.chances[b]; });
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" content=\"width=device-width\"/>"
      "<title>Wrong answers</title><style>";
  page += style;
  page += "</style></head><body>\n<h1>What the network gets wrong</h1>\n<p>" +
          escaped(task.words + ". After " + pp::console::readable_count(t.steps) + " steps " +
                  percent(error_of(task, t)) + " of " + std::to_string(t.answers.size()) +
                  " pictures that it has not seen got a wrong answer.") +
          "</p>\n<p><code>" + escaped(command) + "</code></p>\n";
  page += "<h2>Wrong answers by class</h2>\n" + classes_of(task, t);
  page += "<h2>What is taken for what</h2>\n<div class=\"pairs\">\n";
  std::vector<confused_pair> const pairs = confused_pairs(task, t);
  for (std::size_t i = 0; i < std::min(pairs.size(), most_pairs); ++i)
    page += "<div class=\"pair\"><b>" + escaped(task.class_names[std::size_t(pairs[i].is)]) +
            "</b> for <b>" + escaped(task.class_names[std::size_t(pairs[i].says)]) +
            "</b>: " + std::to_string(pairs[i].count) + "</div>\n";
  std::size_t const shown = std::min(wrong.size(), most_pictures);
  page += "</div>\n<h2>Pictures</h2>\n<p>" +
          (shown < wrong.size()
               ? "The " + std::to_string(shown) + " most certain of " +
                     std::to_string(wrong.size()) + " wrong answers"
               : "All " + std::to_string(shown) + " wrong answers, the most certain first") +
          ".</p>\n<div class=\"wrong\">\n";
  for (std::size_t k = 0; k < shown; ++k) {
    std::size_t const i = wrong[k];
    page += "<figure><img alt=\"\" src=\"data:image/bmp;base64," + base64(bitmap(task.test, i)) +
            "\"/><figcaption><b>" + escaped(task.class_names[std::size_t(task.test.labels[i])]) +
            "</b>, says <b>" + escaped(task.class_names[std::size_t(t.answers[i])]) + "</b> " +
            percent(double(t.chances[i]));
    if (!task.test_sources.empty())
      page += "<br/><span>" + escaped(task.test_sources[i]) + "</span>";
    page += "</figcaption></figure>\n";
  }
  return page + "</div>\n</body></html>\n";
}
