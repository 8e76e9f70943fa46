// SPDX-License-Identifier: BSL-1.0
//
// Text tables with aligned columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/utf8.hpp>

namespace pp {

namespace console {

/// A table. All rows are as long as the heading; columns are right-aligned, except those listed in
/// `left`.
///
/// law: every line of str() ends with '\n' and has no space before it
class text_table {
 public:
  template <class = void>
  explicit text_table(std::vector<std::string> const& heading, std::vector<std::size_t> left = {})
      : columns_(heading.size()), left_(std::move(left)) {
    add(heading);
  }

  /// Adds a row. needs: as many words as the heading has
  template <class = void>
  void add(std::vector<std::string> const& row) {
    for (std::string const& word : row) words_.push_back(word);
  }

  /// The table as text. Widths are counted in code points of UTF-8.
  ///
  /// cost: quadratic in the number of rows
  template <class = void>
  std::string str() const {
    std::string text;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      std::size_t const c = i % columns_, padding = width(c) - detail::code_points(words_[i]);
      bool const left = is_left(c);
      text.append(c > 0 ? 2 : 0, ' ')
          .append(left ? 0 : padding, ' ')
          .append(words_[i])
          .append(left ? padding : 0, ' ');
      if (c + 1 < columns_) continue;
      while (!text.empty() && text.back() == ' ') text.pop_back();
      text += '\n';
    }
    return text;
  }

 private:
  template <class = void>
  std::size_t width(std::size_t column) const {
    std::size_t most = 0;
    for (std::size_t i = column; i < words_.size(); i += columns_)
      if (most < detail::code_points(words_[i])) most = detail::code_points(words_[i]);
    return most;
  }
  bool is_left(std::size_t column) const {
    for (std::size_t const l : left_)
      if (l == column) return true;
    return false;
  }

  std::size_t columns_;
  std::vector<std::string> words_;  // row by row
  std::vector<std::size_t> left_;
};

}  // namespace console

namespace detail {

using namespace console;

/// Wraps a list after commas into lines of at most `width` characters, if its items allow it; lines
/// after the first are indented.
template <class = void>
std::string wrapped(std::string_view list, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  while (!list.empty()) {
    std::size_t const comma = list.find(", "), end = comma == list.npos ? list.size() : comma + 1;
    std::string_view const piece = list.substr(0, end);
    std::size_t const length = code_points(piece);
    if (column > indent && column + 1 + length > width) {
      result.append("\n").append(indent, ' ');
      column = indent;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += piece;
    column += length;
    list.remove_prefix(end < list.size() ? end + 1 : end);
  }
  return result;
}

}  // namespace detail

}  // namespace pp
