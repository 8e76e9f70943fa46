// SPDX-License-Identifier: BSL-1.0
//
// Scales of columns of numbers, which are saved with the weights.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>

namespace pp::tables {

/// The mean and the standard deviation of each column, by which inputs become numbers around 0. A
/// missing number (NaN) counts in neither, and becomes the mean: 0. A column of equal numbers
/// becomes 0.
struct scale {
  std::vector<double> mean, deviation;

  /// Of rows of `columns` numbers.
  ///
  /// throws: data_error for a number of columns that does not divide the numbers, or a column
  ///         without a number
  template <class T>
  static scale of(std::vector<T> const& rows, std::size_t columns) {
    if (columns == 0 || rows.size() % columns != 0)
      throw data_error("scale: " + std::to_string(rows.size()) + " numbers are no rows of " +
                       std::to_string(columns));
    scale s;
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0, squares = 0;
      long count = 0;
      for (std::size_t i = c; i < rows.size(); i += columns)
        if (!std::isnan(rows[i])) sum += double(rows[i]), ++count;
      if (count == 0) throw data_error("scale: column " + std::to_string(c) + " has no number");
      double const mean = sum / double(count);
      for (std::size_t i = c; i < rows.size(); i += columns)
        if (!std::isnan(rows[i])) squares += (double(rows[i]) - mean) * (double(rows[i]) - mean);
      double const deviation = std::sqrt(squares / double(count));
      s.mean.push_back(mean);
      s.deviation.push_back(deviation > 0 ? deviation : 1);
    }
    return s;
  }
  /// (x - mean) / deviation, in place.
  ///
  /// throws: data_error as of()
  template <class T>
  void apply(std::vector<T>& rows) const {
    check(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::size_t const c = i % mean.size();
      rows[i] = std::isnan(rows[i]) ? T(0) : T((double(rows[i]) - mean[c]) / deviation[c]);
    }
  }
  /// x * deviation + mean, in place: of outputs that were trained on scaled labels.
  template <class T>
  void undo(std::vector<T>& rows) const {
    check(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::size_t const c = i % mean.size();
      rows[i] = T(double(rows[i]) * deviation[c] + mean[c]);
    }
  }
  /// As text, for the metadata of a file of weights.
  ///
  /// law: parse(text()) has the same bits
  std::string text() const {
    std::string all;
    for (std::size_t c = 0; c < mean.size(); ++c)
      for (double const x : {mean[c], deviation[c]}) {
        char number[32];
        all += all.empty() ? "" : " ";
        all.append(number, std::to_chars(number, number + sizeof number, x).ptr);
      }
    return all;
  }
  /// throws: data_error for text that text() did not make
  static scale parse(std::string_view text) {
    scale s;
    std::vector<double> all;
    char const *at = text.data(), *const end = at + text.size();
    while (at != end) {
      double value = 0;
      auto const read = std::from_chars(at, end, value);
      if (read.ec != std::errc() || (read.ptr != end && (*read.ptr != ' ' || read.ptr + 1 == end)))
        throw data_error("scale: '" + std::string(text) + "' is no text of a scale");
      all.push_back(value);
      at = read.ptr == end ? end : read.ptr + 1;
    }
    if (all.empty() || all.size() % 2 != 0)
      throw data_error("scale: expected two numbers for each column, got " +
                       std::to_string(all.size()));
    for (std::size_t i = 0; i < all.size(); i += 2) {
      if (!std::isfinite(all[i]) || !(all[i + 1] > 0) || !std::isfinite(all[i + 1]))
        throw data_error("scale: '" + std::string(text) + "' is no text of a scale");
      s.mean.push_back(all[i]), s.deviation.push_back(all[i + 1]);
    }
    return s;
  }

 private:
  void check(std::size_t numbers) const {
    if (mean.empty() || numbers % mean.size() != 0)
      throw data_error("scale: " + std::to_string(numbers) + " numbers are no rows of " +
                       std::to_string(mean.size()));
  }
};

}  // namespace pp::tables
