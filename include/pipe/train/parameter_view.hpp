// SPDX-License-Identifier: BSL-1.0
//
// The parameters of a trainer, as a program sees them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace pp {

/// A parameter and its gradient where they are, row-major; a Linear's weight is [inputs, outputs].
template <class T>
struct parameter_view {
  int index = 0;                   ///< in the model's graph
  int layer = 0;                   ///< top-level layer, from 0, as `explain` counts them
  std::string name;                ///< in weight files: see train/names.hpp
  std::vector<long> file_shape;    ///< there
  bool stored_transposed = false;  ///< there: [columns, rows]
  int rows = 0, columns = 0;
  std::span<T> values;
  std::span<T const> gradients;  ///< empty if it is not trained
};

}  // namespace pp
