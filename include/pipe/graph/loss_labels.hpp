// SPDX-License-Identifier: BSL-1.0
//
// The labels and terms of a loss, by its type: ids of rows, numbers of elements, or numbers of
// rows.
#pragma once

#include <pipe/base/config.hpp>

namespace pp::detail {

/// Labels of a row of `columns` columns: an id; or as many numbers as the loss says, which without
/// a word of its own reads one for each column.
template <class Loss>
constexpr int labels_of_row(int columns) {
  if constexpr (Loss::labels_are_ids)
    return 1;
  else if constexpr (requires { Loss::row_labels(columns); })
    return Loss::row_labels(columns);
  else
    return columns;
}
/// Whether a term of the loss is a row.
template <class Loss>
inline constexpr bool counts_rows = Loss::labels_are_ids || requires { Loss::row_labels(1); };
/// Terms of a row, by whose number the sum of the loss is divided: 1, or each element if the loss
/// is a sum over elements.
template <class Loss>
constexpr int terms_of_row(int columns) {
  return counts_rows<Loss> ? 1 : columns;
}

}  // namespace pp::detail
