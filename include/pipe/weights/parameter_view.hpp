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
  std::string name;              ///< name in weight files: see weights/names.hpp
  std::vector<long> file_shape;  ///< shape in weight files
  /// Whether weight files store the parameter as [columns, rows], a convolution's as [columns,
  /// channels, window].
  bool stored_transposed = false;
  int rows = 0, columns = 0;
  std::span<T> values;
  std::span<T const> gradients;  ///< empty for a parameter that is not trained
};

/// Calls use(view) for each parameter of a trainer, in the order of parameters(). Values may be
/// read and written during the call; after writing values call parameters_changed(). All processes
/// of the trainer call for_each_parameter.
///
///     for_each_parameter(trainer, [](auto const& p) { print(p.name, norm_of(p.values)); });
///
/// memory: none. Where replicas divide parameters (ZeRO<3>), one parameter at a time is brought
///         together, in the memory in which steps do so, whereas parameters() copies all of them in
///         every process
/// throws: what `use` throws; the other processes then wait, up to their deadline
template <class Trainer, class Use>
void for_each_parameter(Trainer& trainer, Use use) {
  auto const all = trainer.processes();
  for (auto& view : all.list()) all.visit(view, use);
}

}  // namespace pp
