// SPDX-License-Identifier: BSL-1.0
//
// Tables of text files with separators (CSV).
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/io/file_bytes.hpp>

namespace pp::detail {
class csv_reader;
}

namespace pp::tables {

/// The form of a file of a table.
struct csv_format {
  char separator = ',';
  char quote = '"';
  char decimal = '.';     ///< of numbers; a comma in files with another separator
  bool has_names = true;  ///< the first line has the names of the columns
  /// Fields that are no number, beside an empty one, without regard to case.
  std::vector<std::string> missing = {"na", "n/a", "nan", "null", "none", "?"};
};

/// A table: rows of fields, under the names of its columns.
class table {
 public:
  table(std::string name, csv_format format, std::vector<std::string> columns)
      : name_(std::move(name)), format_(std::move(format)), columns_(std::move(columns)) {}

  std::size_t rows() const { return lines_.size(); }
  std::vector<std::string> const& columns() const { return columns_; }
  /// The number of a column.
  ///
  /// throws: data_error if there is none of that name
  std::size_t column(std::string_view name) const {
    auto const at = std::find(columns_.begin(), columns_.end(), name);
    if (at != columns_.end()) return std::size_t(at - columns_.begin());
    std::string all;
    for (std::string const& each : columns_) all += (all.empty() ? "\"" : ", \"") + each + "\"";
    throw data_error(name_ + ": there is no column \"" + std::string(name) + "\" among " + all);
  }
  /// A field as it is in the file, without its quotes.
  std::string_view field(std::size_t row, std::size_t column) const {
    std::size_t const at = row * columns_.size() + column, begin = at > 0 ? ends_[at - 1] : 0;
    return std::string_view(bytes_).substr(begin, ends_[at] - begin);
  }
  /// Whether a field is empty, or one of the words that stand for a missing number.
  bool is_missing(std::size_t row, std::size_t column) const {
    std::string_view const text = trimmed(field(row, column));
    return text.empty() || std::any_of(format_.missing.begin(), format_.missing.end(),
                                       [&](std::string const& word) { return alike(word, text); });
  }
  /// A field as a number; NaN if it is missing.
  ///
  /// throws: data_error for a field that is neither a finite number nor missing
  double number(std::size_t row, std::size_t column) const {
    if (is_missing(row, column)) return std::numeric_limits<double>::quiet_NaN();
    std::string text(trimmed(field(row, column)));
    if (format_.decimal != '.')
      for (char& c : text)
        if (c == format_.decimal) c = '.';
    char const *const end = text.data() + text.size(), *begin = text.data();
    begin += text[0] == '+' && text.size() > 1 && text[1] != '-';
    double value = 0;
    auto const read = std::from_chars(begin, end, value);
    if (read.ec != std::errc() || read.ptr != end || !std::isfinite(value))
      throw data_error(where(row, column) + ": '" + std::string(field(row, column)) +
                       "' is no number" +
                       (read.ec == std::errc::result_out_of_range ? " that a double holds" : ""));
    return value;
  }
  /// The place of a field, for messages.
  std::string where(std::size_t row, std::size_t column) const {
    return name_ + ", line " + std::to_string(lines_[row]) + ", column \"" + columns_[column] +
           "\"";
  }
  /// These rows, in this order.
  table take(std::span<std::size_t const> rows) const {
    table part(name_, format_, columns_);
    for (std::size_t const r : rows) {
      for (std::size_t c = 0; c < columns_.size(); ++c) part.add(field(r, c));
      part.lines_.push_back(lines_[r]);
    }
    return part;
  }
  /// The rows without a missing field in any of these columns.
  table complete(std::vector<std::string> const& names) const {
    std::vector<std::size_t> at, rows_kept;
    for (std::string const& name : names) at.push_back(column(name));
    for (std::size_t r = 0; r < rows(); ++r)
      if (std::none_of(at.begin(), at.end(), [&](std::size_t c) { return is_missing(r, c); }))
        rows_kept.push_back(r);
    return take(rows_kept);
  }

 private:
  friend class detail::csv_reader;

  void add(std::string_view field) {
    bytes_ += field;
    ends_.push_back(bytes_.size());
  }
  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
  }
  static bool alike(std::string_view a, std::string_view b) {
    auto const lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                              [&](char x, char y) { return lower(x) == lower(y); });
  }

  std::string name_;
  csv_format format_;
  std::vector<std::string> columns_;
  std::string bytes_;               // of all fields, row by row
  std::vector<std::size_t> ends_;   // by field: where its bytes end
  std::vector<std::size_t> lines_;  // by row: the line in the file at which the row begins
};

}  // namespace pp::tables

namespace pp::detail {

/// A reader of a table's text, as RFC 4180 has it: fields in quotes may have separators, ends of
/// lines and doubled quotes; lines end in LF or CRLF; blank lines are no rows.
class csv_reader {
 public:
  csv_reader(std::string const& name, std::string_view text, tables::csv_format const& format)
      : name_(name), text_(text), format_(format) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // a mark of UTF-8
  }
  /// throws: data_error with the line for quotes that do not end, rows of different lengths, and
  ///         names that are empty or given twice
  tables::table read() {
    std::vector<std::string> row;
    std::size_t begin = 0;
    if (!next(row, begin)) throw data_error(name_ + ": the table is empty");
    std::vector<std::string> names = row;
    if (!format_.has_names)
      for (std::size_t c = 0; c < names.size(); ++c) names[c] = std::to_string(c);
    for (std::size_t c = 0; c < names.size(); ++c)
      if (names[c].empty() || std::find(names.begin(), names.begin() + std::ptrdiff_t(c),
                                        names[c]) != names.begin() + std::ptrdiff_t(c))
        throw data_error(name_ + ", line " + std::to_string(begin) + ": column " +
                         std::to_string(c + 1) +
                         (names[c].empty() ? " has no name"
                                           : " has the name \"" + names[c] + "\" a second time"));
    tables::table all(name_, format_, std::move(names));
    if (!format_.has_names) add(all, row, begin);
    while (next(row, begin)) add(all, row, begin);
    return all;
  }

 private:
  void add(tables::table& to, std::vector<std::string> const& row, std::size_t begin) const {
    if (row.size() != to.columns_.size())
      throw data_error(name_ + ", line " + std::to_string(begin) + ": expected " +
                       std::to_string(to.columns_.size()) + " fields, got " +
                       std::to_string(row.size()));
    for (std::string const& each : row) to.add(each);
    to.lines_.push_back(begin);
  }
  /// Reads the next row that is not blank; false at the end.
  bool next(std::vector<std::string>& row, std::size_t& begin) {
    while (at_ < text_.size() && ends_line()) skip_end();
    if (at_ == text_.size()) return false;
    row.clear();
    begin = line_;
    for (;;) {
      row.push_back(field());
      if (at_ == text_.size()) return true;
      if (ends_line()) return skip_end(), true;
      ++at_;  // the separator
    }
  }
  std::string field() {
    std::string found;
    if (at_ == text_.size() || text_[at_] != format_.quote) {
      while (at_ < text_.size() && text_[at_] != format_.separator && !ends_line())
        found += text_[at_++];
      return found;
    }
    std::size_t const begin = line_;
    for (++at_;; ++at_) {
      if (at_ == text_.size())
        throw data_error(name_ + ", line " + std::to_string(begin) +
                         ": the quotes of a field do not end");
      if (text_[at_] == format_.quote) {
        ++at_;
        if (at_ == text_.size() || text_[at_] != format_.quote) break;
      }
      line_ += text_[at_] == '\n';
      found += text_[at_];
    }
    if (at_ < text_.size() && text_[at_] != format_.separator && !ends_line())
      throw data_error(name_ + ", line " + std::to_string(line_) +
                       ": expected a separator after the quotes of a field, got '" +
                       std::string(1, text_[at_]) + "'");
    return found;
  }
  bool ends_line() const {
    return text_[at_] == '\n' ||
           (text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
  }
  void skip_end() {
    at_ += text_[at_] == '\r' && at_ + 1 < text_.size() ? 2 : 1;
    ++line_;
  }

  std::string const& name_;
  std::string_view text_;
  tables::csv_format const& format_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace pp::detail

namespace pp::tables {

/// A table from a file.
///
/// throws: file_error if it cannot be read; data_error with the line if it is no table
inline table read_csv(std::string const& path, csv_format const& format = {}) {
  std::string const text = detail::file_bytes(path), name = "'" + path + "'";
  return detail::csv_reader(name, text, format).read();
}

}  // namespace pp::tables
