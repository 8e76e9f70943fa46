// SPDX-License-Identifier: BSL-1.0
//
// Rows of words as aligned columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pp {

/// The first row is the heading; columns are right-aligned, but for those named in `left`.
///
/// law: every line of str() ends with '\n' and has no space before it
class text_table {
 public:
  explicit text_table(std::vector<std::string> heading, std::vector<std::size_t> left = {})
      : rows_{std::move(heading)}, left_(std::move(left)) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string str() const {
    std::vector<std::size_t> widths;
    for (auto const& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    }
    std::string text;
    for (auto const& row : rows_) {
      std::string line;
      for (std::size_t c = 0; c < row.size(); ++c) {
        std::string const padding(widths[c] - row[c].size(), ' ');
        bool const left = std::find(left_.begin(), left_.end(), c) != left_.end();
        line += (c > 0 ? "  " : "") + (left ? row[c] + padding : padding + row[c]);
      }
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> left_;
};

/// Breaks a list after commas into lines of at most `width` characters where that is possible; lines after the first
/// are indented.
inline std::string wrapped(std::string_view list, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  while (!list.empty()) {
    std::size_t const comma = list.find(", "), end = comma == list.npos ? list.size() : comma + 1;
    std::string_view const piece = list.substr(0, end);
    if (column > indent && column + 1 + piece.size() > width) {
      result.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += piece;
    column += piece.size();
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return result;
}

}  // namespace pp
