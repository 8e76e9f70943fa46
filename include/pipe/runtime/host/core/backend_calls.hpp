// SPDX-License-Identifier: BSL-1.0
//
// The functions that the host backend provides to the runtime, selected once for the instruction
// set of the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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
  /// out[c * out_stride + r] = in[r * in_stride + c], as values
  void (*transpose)(T const* in, std::ptrdiff_t rows, std::ptrdiff_t columns,
                    std::ptrdiff_t in_stride, void* out, std::ptrdiff_t out_stride) = nullptr;
  /// The transpose of these rows of a matrix, in panels: see host::transpose_to_panels.
  void (*to_panels)(T const* in, host::part_range own, std::ptrdiff_t rows, std::ptrdiff_t columns,
                    void* out) = nullptr;
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
  /// Conversion of numbers to values of 16 bits, and back. Null where values are numbers.
  void (*narrow)(T const* from, std::ptrdiff_t, void* to) = nullptr;
  void (*widen)(void const* from, std::ptrdiff_t, T* to) = nullptr;
  int value_bytes = int(sizeof(T));
  host::product_unit unit = host::product_unit::vectors;  ///< of products of 16-bit numbers

  /// The rows of a matrix that one thread copies and transposes: whole cache lines of the
  /// transposed copy.
  host::part_range rows_of(parameter_place const& p, int part, int parts) const {
    return host::part_of(p.rows, host::extent(host::widest_vector_bytes) / value_bytes, part,
                         parts);
  }
  /// Converts the real-valued numbers of a mini-batch, or back; numbers are copied where values are
  /// numbers.
  void to_values(T const* from, std::ptrdiff_t n, void* to) const {
    if (narrow != nullptr) return narrow(from, n, to);
    std::memcpy(to, from, sizeof(T) * std::size_t(n));
  }
  void from_values(void const* from, std::ptrdiff_t n, T* to) const {
    if (widen != nullptr) return widen(from, n, to);
    std::memcpy(to, from, sizeof(T) * std::size_t(n));
  }
  /// Writes the part of a parameter's transposed copy that these rows of the parameter make.
  void transpose_rows(parameter_place const& p, host::part_range rows, T const* values,
                      char* to) const {
    if (p.in_panels) return to_panels(values, rows, p.rows, p.columns, to);
    transpose(values + rows.begin * p.columns, rows.size(), p.columns, p.columns,
              to + rows.begin * value_bytes, p.rows);
  }
  /// Writes these rows of a parameter's copy that kernels read.
  ///
  /// needs: values of 16 bits; to: of the whole parameter
  void copy_rows(parameter_place const& p, host::part_range rows, T const* values, char* to) const {
    narrow(values + rows.begin * p.columns, rows.size() * p.columns,
           to + rows.begin * p.columns * value_bytes);
  }
};

}  // namespace pp::detail
