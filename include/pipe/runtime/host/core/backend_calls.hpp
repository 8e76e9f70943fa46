// SPDX-License-Identifier: BSL-1.0
//
// The functions that the host backend provides to the runtime, selected once for the instruction
// set of the machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pipe/backend/host/parts.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// An optimizer update of one range of a chunk's parameters. `own`: this thread's elements of the
/// range, if the optimizer is element-wise.
///
/// shape: values, gradients: the range's elements; state: the optimizer's state_elements() of the
///        range; workspace: of one thread
template <class T>
struct update_request {
  update_range const& range;
  T* values = nullptr;
  T const* gradients = nullptr;
  T* state = nullptr;
  T* workspace = nullptr;
  long step = 1;
  double learning_rate = 0, gradient_scale = 1;
  host::part_range own{};
};

/// Function table of a backend: the kernels of its groups, by group number, and the vector
/// operations of the end of a step.
template <class T>
struct backend_calls {
  host::kernel<T> const* groups = nullptr;
  /// The sum of x[i]^2, in double.
  double (*sum_of_squares)(std::ptrdiff_t, T const*) = nullptr;
  /// to[i] += from[i]; null if neither parameters nor mini-batches are shared.
  void (*add)(std::ptrdiff_t, T*, T const*) = nullptr;
  /// out[c * out_stride + r] = in[r * in_stride + c]
  void (*transpose)(T const* in, std::ptrdiff_t rows, std::ptrdiff_t columns,
                    std::ptrdiff_t in_stride, T* out, std::ptrdiff_t out_stride) = nullptr;
  /// One optimizer step on the elements `own` of a range, or on a whole tensor.
  void (*update)(void const* optimizer, update_request<T> const&) = nullptr;
  /// First argument of `update`.
  void const* optimizer = nullptr;
  std::uint64_t optimizer_settings = 0;  ///< a hash of the optimizer's settings
  int states = 0;                        ///< of an element: numbers in the optimizer's state
  /// x[i] clipped to [-bound, bound], for clipping by value.
  void (*clamp)(std::ptrdiff_t, T*, T) = nullptr;
  /// x[i] += rate (y[i] - x[i]), for averages of parameters.
  /// Null if no averages are kept.
  void (*approach)(std::ptrdiff_t, T*, T const*, T) = nullptr;

  /// The rows of a matrix that one thread copies and transposes: whole cache lines of the
  /// transposed copy.
  static host::part_range rows_of(parameter_place const& p, int part, int parts) {
    return host::part_of(p.rows, host::column_alignment<T>, part, parts);
  }
  /// Writes the part of a parameter's transposed copy that these rows of the parameter make.
  void transpose_rows(parameter_place const& p, host::part_range rows, T const* values,
                      T* to) const {
    transpose(values + rows.begin * p.columns, rows.size(), p.columns, p.columns, to + rows.begin,
              p.rows);
  }
};

}  // namespace pp::detail
