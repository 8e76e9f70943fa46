// SPDX-License-Identifier: BSL-1.0
//
// The kernels of a decoder: the ops of a forward pass on a few new rows, each op by itself. The
// table is filled (per_isa/new_rows.inl) with the functions that kernels of groups call too, so
// that a row has the same bits as in a whole forward pass.
#pragma once

#include <pipe/backend/host/attention_loops.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/narrow_matrix.hpp>
#include <pipe/backend/host/values.hpp>
#include <pipe/base/half.hpp>
#include <pipe/graph/op.hpp>

namespace pp::host {

/// The functions of one instruction set that every decoder calls, for elements of type T.
template <class T>
struct row_kernels {
  isa runs_on = isa::portable;
  attention_set<T> attention;  ///< with register tiles and transposition
  attention_set<T> shaped;     ///< the same for shaped scores, if the program has some
  /// y[n] = x[k] w[k, n], with the bits of a contraction; w is read in the order of memory.
  void (*multiply)(extent n, extent k, T const* x, T const* w, extent ldw, T* y) = nullptr;
  value_rows<T, bf16> kept;     ///< of keys and values in bfloat16; empty for double
  narrow_kernels<T> narrow[3];  ///< by decoder_weights; empty for weights as trained
  void (*add)(extent n, T const* x, T const* z, T* y) = nullptr;
  void (*times)(extent n, T const* x, T const* z, T* y) = nullptr;
  /// dot[0] is dot_row for any length; dot[1] for a length of whole vectors.
  void (*dot[2])(int n, T const* x, T const* z, T* y) = {};
  void (*scale)(int n, T const* x, T s, T* y) = nullptr;
  void (*slope)(extent n, T const* x, T const* slope, bool is_shared, T* y) = nullptr;
  /// norm[0] is norm_row for any length; norm[1] for a length of whole vectors.
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
