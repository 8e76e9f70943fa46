// SPDX-License-Identifier: BSL-1.0
//
// Views of a trainer's parameters.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <pipe/base/config.hpp>

namespace pp {

/// A view of a parameter and its gradient in the trainer's memory, row-major; a Linear's weight is
/// [inputs, outputs]. Valid as long as the trainer.
template <class T>
struct parameter_view {
  int index = 0;                 ///< number in the model's graph
  int layer = 0;                 ///< top-level layer, counted from 0 as `explain` does
  std::string name;              ///< name in weight files: see train/names.hpp
  std::vector<long> file_shape;  ///< shape in weight files
  /// Whether weight files store it as [columns, rows]; of a convolution: [columns, channels,
  /// window].
  bool stored_transposed = false;
  int rows = 0, columns = 0;
  std::span<T> values;
  std::span<T const> gradients;  ///< empty for a parameter that is not trained
};

}  // namespace pp
