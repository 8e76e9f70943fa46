// SPDX-License-Identifier: BSL-1.0
//
// Inputs and labels from tables: numbers, with a rule for missing numbers, and categories as ids.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/data/table.hpp>

namespace pp::tables {

/// How numbers() treats a missing number: as an error, or as NaN, which a `scale` replaces by the
/// mean.
enum class missing { refused, kept };

/// Numbers of these columns, row by row.
///
/// shape:  [rows][columns]
/// throws: data_error with the place for a field that is no number, is missing and refused, or is
///         too large for a float
template <class T = float>
std::vector<T> numbers(table const& of, std::vector<std::string> const& columns,
                       missing rule = missing::refused) {
  std::vector<std::size_t> at;
  for (std::string const& name : columns) at.push_back(of.column(name));
  std::vector<T> all;
  all.reserve(of.rows() * at.size());
  for (std::size_t r = 0; r < of.rows(); ++r)
    for (std::size_t const c : at) {
      double const value = of.number(r, c);
      if (std::isnan(value) && rule == missing::refused)
        throw data_error(of.where(r, c) + ": a number is missing");
      if (!std::isnan(value) && !std::isfinite(T(value)))
        throw data_error(of.where(r, c) + ": " + std::string(of.field(r, c)) + " is too large");
      all.push_back(T(value));
    }
  return all;
}

/// The different fields of a column, sorted: the names of its categories, whatever the order of the
/// rows.
inline std::vector<std::string> categories(table const& of, std::string_view column) {
  std::size_t const c = of.column(column);
  std::vector<std::string> all;
  for (std::size_t r = 0; r < of.rows(); ++r) all.emplace_back(of.field(r, c));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}
/// The id of each row's category: its place in `names`, which is sorted. A field that is not among
/// the names has the id `otherwise`.
///
/// throws: data_error with the place for such a field if `otherwise` is negative
inline std::vector<int> ids(table const& of, std::string_view column,
                            std::vector<std::string> const& names, int otherwise = -1) {
  std::size_t const c = of.column(column);
  std::vector<int> all;
  for (std::size_t r = 0; r < of.rows(); ++r) {
    auto const found = std::lower_bound(names.begin(), names.end(), of.field(r, c));
    bool const is_there = found != names.end() && *found == of.field(r, c);
    if (!is_there && otherwise < 0)
      throw data_error(of.where(r, c) + ": '" + std::string(of.field(r, c)) +
                       "' is none of the categories");
    all.push_back(is_there ? int(found - names.begin()) : otherwise);
  }
  return all;
}

}  // namespace pp::tables
