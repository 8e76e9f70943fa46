// SPDX-License-Identifier: BSL-1.0
//
// The kernels of a decoder: the ops of a forward pass on a few new rows, each apart. The table is
// filled (per_isa/new_rows.inl) with the functions that group kernels are made of, so that a row
// has the bits that a whole forward pass gives it.
#pragma once

#include <pipe/backend/host/attention_loops.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/graph/op.hpp>

namespace pp::host {

/// The functions of one instruction set that every decoder calls, for elements of type T.
template <class T>
struct row_kernels {
  isa runs_on = isa::portable;
  attention_set<T> attention;  ///< and register tiles, and transposition
  attention_set<T> shaped;     ///< the same for shaped scores, if the program has some
  /// y[n] = x[k] w[k, n]: the bits of a contraction, but the matrix is read as it lies in memory.
  void (*multiply)(extent n, extent k, T const* x, T const* w, extent ldw, T* y) = nullptr;
  void (*add)(extent n, T const* x, T const* z, T* y) = nullptr;
  /// See norm_row. The second: the length is a multiple of the vectors'.
  void (*norm[2])(int n, bool has_mean, T epsilon, T const* x, T const* gamma, T const* beta,
                  T* statistics, T* y) = {};
};

/// An op compiled for its layer type and width: a map, a gate or a softmax of one row.
struct row_formula {
  op_kind kind = op_kind::none;
  int leaf = 0, columns = 0;  // of the result
  friend constexpr bool operator==(row_formula const&, row_formula const&) = default;
};
/// The compiled function of a row_formula: y = f(x), with the widths of the formula.
template <class T>
using row_function = void (*)(T const* x, T* y);

}  // namespace pp::host
