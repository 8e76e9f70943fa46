// SPDX-License-Identifier: BSL-1.0
//
// Divisions of a data set into rows for training and for validation.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/shuffled_order.hpp>

namespace pp::tables {

/// Numbers of rows for training and for validation.
struct division {
  std::vector<std::size_t> training, validation;
};
/// `share` of n rows for validation, drawn by the seed; at least one row of each.
///
/// throws: data_error for fewer than 2 rows, or a share outside (0, 1)
inline division divide(std::size_t n, double share, std::uint64_t seed) {
  if (n < 2 || !(share > 0 && share < 1))
    detail::throw_error<data_error>(
        {"divide: expected 2 rows or more and a share in (0, 1), got ", n, " and ", share});
  std::vector<std::size_t> const order = detail::shuffled_order(n, seed, 0);
  std::size_t const count =
      std::min(n - 1, std::max<std::size_t>(1, std::size_t(double(n) * share + 0.5)));
  auto const at = order.begin() + std::ptrdiff_t(count);
  return {{at, order.end()}, {order.begin(), at}};
}
/// k divisions, of which each row is in the validation of one (k-fold).
///
/// throws: data_error for k below 2 or above n
inline std::vector<division> folds(std::size_t n, std::size_t k, std::uint64_t seed) {
  if (k < 2 || k > n)
    throw data_error("folds: expected 2 to " + std::to_string(n) + " folds, got " +
                     std::to_string(k));
  std::vector<std::size_t> const order = detail::shuffled_order(n, seed, 0);
  std::vector<division> all(k);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t f = 0; f < k; ++f)
      (i % k == f ? all[f].validation : all[f].training).push_back(order[i]);
  return all;
}
/// These rows of `columns` numbers or ids each.
///
/// needs: every row is there
template <class T>
std::vector<T> take(std::vector<T> const& from, std::span<std::size_t const> rows,
                    std::size_t columns = 1) {
  std::vector<T> all;
  all.reserve(rows.size() * columns);
  for (std::size_t const r : rows)
    all.insert(all.end(), from.begin() + std::ptrdiff_t(r * columns),
               from.begin() + std::ptrdiff_t((r + 1) * columns));
  return all;
}

}  // namespace pp::tables
