// SPDX-License-Identifier: BSL-1.0
//
// Matrix products of kernel groups. The work of a launch outside the tiles depends on numbers
// alone, so one function serves all groups on all instruction sets. Tiles, and the ends around a
// product with the model's formulas, are called through pointers.
#pragma once

#include <pipe/backend/host/arguments.hpp>
#include <pipe/backend/host/contraction_loops.hpp>
#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/passes/group.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Reads n elements of each row once, in order, so that a kernel that then reads them by columns
/// finds them in L2: the prefetcher follows rows, not columns.
template <class T>
void warm(T const* x, extent rows, extent n, extent stride) {
  constexpr extent line = 64 / static_cast<extent>(sizeof(T));
  T sum(0);
  for (extent r = 0; r < rows; ++r, x += stride)
    for (extent i = 0; i < n; i += line) sum += x[i];
  asm volatile("" : : "m"(sum));
}

/// The argument of the ends around a product: the rows of a group that one part computes.
template <class T>
struct product_part {
  arguments<T> const& a;
  extent first = 0;        ///< the group's row that is row 0 of the product
  T* left_rows = nullptr;  ///< to which the prologue writes rows of the left factor
};

/// The ends of y^T = w^T x^T for the ends of y = x w: panels of x^T, and the way back of sums to
/// the epilogue.
template <class T>
struct transposed_ends {
  tile_set<T> const& tiles;
  contraction_ends<T> const& of;
  T const* x;
  extent inner;

  /// The ends. needs: *this outlives them; of.sink, or of.c and of.ldc
  contraction_ends<T> ends() {
    contraction_ends<T> e;
    e.right = this, e.make_right = &right;
    if (of.sink == nullptr) {
      e.c = of.c, e.ldc = 1, e.column = of.ldc, e.adds = of.adds;
      return e;
    }
    e.sink = this, e.rest = &finish;
    e.tile = [](void* self, extent i, extent j, int rows, T* sums, extent stride) {
      finish(self, i, j, rows, static_cast<transposed_ends*>(self)->tiles.columns(), sums, stride);
    };
    e.vector = [](void* self, extent i, extent j, int rows, T* sums, extent stride) {
      finish(self, i, j, rows, static_cast<transposed_ends*>(self)->tiles.lanes, sums, stride);
    };
    return e;
  }

 private:
  static void right(void* self, extent p, extent depth, extent j, int columns, int padded,
                    T* panel) {
    auto const& f = *static_cast<transposed_ends const*>(self);
    f.tiles.transpose(f.x + j * f.inner + p, columns, depth, f.inner, panel, padded);
    for (extent d = 0; columns < padded && d < depth; ++d)
      for (int c = columns; c < padded; ++c) panel[d * padded + c] = T(0);
  }
  /// Columns [i, i + rows) of y in its rows [j, j + columns).
  static void finish(void* self, extent i, extent j, int rows, int columns, T* sums,
                     extent stride) {
    auto const& to = static_cast<transposed_ends const*>(self)->of;
    if (rows == 1) return to.rest(to.sink, j, i, columns, 1, sums, 1);
    constexpr int most = widest_vector_bytes / int(sizeof(T)) * 3 * 4;  // of a tile so narrow
    T rows_of_y[most];
    for (int c = 0; c < columns; ++c)
      for (int r = 0; r < rows; ++r) rows_of_y[c * rows + r] = sums[r * stride + c];
    to.rest(to.sink, j, i, columns, rows, rows_of_y, rows);
  }
};

/// The matrices that the epilogue of group g reads and writes, from row own.begin on. None if all
/// of them are so small that they are in L2 from the launch before, or from the micro-batch before.
template <class T>
PIPE_ONE_COPY sink_matrices<T> matrices_beside(arguments<T> const& a, detail::group const& g,
                                               part_range own) {
  constexpr extent near_cache = 512 * 1024;  // a quarter of L2
  sink_matrices<T> beside;
  beside.row = g.columns;
  auto const note = [&](int operand) {
    if (operand >= 0) beside.add(a.at(operand) + own.begin * g.columns);
  };
  note(g.out[0]);
  for (detail::pointwise_op const& s : g.epilogue) {
    note(s.store);
    if (detail::reads_matrix(s)) note(s.operand);
  }
  if (beside.count * own.size() * g.columns * extent(sizeof(T)) <= near_cache) beside.count = 0;
  return beside;
}

/// y = x w with the prologue and the epilogue of group g: the rows of y that part `a.part` owns.
///
/// shape: x (rows, inner), w (inner, columns) -> y (rows, columns)
/// law:   the bits do not depend on the number of parts
/// needs: a.workspace: contraction_facts::workspace_bytes
///
/// around: the functions of the prologue and the epilogue, which take a product_part; null if the
/// group has none. A prologue's rows are written to memory if another group reads them, else to the
/// workspace; rows of numbers that are narrower in memory always to the workspace.
template <class T, class V = T>
PIPE_ONE_COPY void multiply(value_products<T, V> const& set, arguments<T> const& a,
                            detail::group const& g, extent rows,
                            contraction_ends<T> const& around) {
  extent const inner = g.attributes.contraction().inner;
  part_range const own = part_of(rows, row_alignment, a.part, a.parts);
  if (own.size() == 0) return;
  product_part<T> part{a, own.begin};
  contraction_ends<T> ends = around;
  if (around.tile != nullptr) {
    ends.sink = &part;
    if constexpr (in_place<T, V>) ends.beside = matrices_beside(a, g, own);
  } else {
    ends.c = a.at(g.out[0]) + own.begin * g.columns;
    ends.ldc = g.columns;
  }
  strided<V const> const left{a.template values<V>(g.in[0]) + own.begin * inner, inner, 1};
  strided<T const> made{nullptr, inner, 1};
  char* workspace = static_cast<char*>(a.workspace);
  if (around.make_rows != nullptr) {
    int const stored = in_place<T, V> ? g.prologue.back().store : -1;
    part.left_rows =
        stored >= 0 ? a.at(stored) + own.begin * inner : reinterpret_cast<T*>(workspace);
    if (stored < 0) workspace += detail::align_up(own.size() * inner * long(sizeof(T)));
    made.data = part.left_rows;
    ends.prologue = &part;
  }
  if constexpr (in_place<T, V>)
    if (is_narrow_product(g.columns, set.tiles.lanes) && own.size() >= set.tiles.lanes &&
        !set.slices(a.unit) && around.make_rows == nullptr) {
      transposed_ends<T> back{set.tiles, ends, left.data, inner};
      return contract_tiles<T>(set.tiles, {g.columns, own.size(), inner},
                               {a.template values<V>(g.in[1]), 1, g.columns}, nullptr, 0,
                               back.ends(), workspace,
                               narrow_product_blocking(g.columns, inner, set.tiles.columns()));
    }
  extent const ldb = a.panels >> g.in[1] & 1 ? in_panels : g.columns;
  contract_values<T, V>(
      set, a.unit, {{own.size(), g.columns, inner}, left, a.template values<V>(g.in[1]), ldb, made},
      ends, workspace);
}

/// A function out[c] (+)= sum over r of in[r * stride + c], c < columns, compiled for an
/// instruction set.
template <class T, class V = T>
using column_adder = void (*)(V const* in, extent rows, extent columns, extent stride, T* out,
                              bool accumulate);

/// out[c] (+)= sum over r of in[r, c], for the columns of one part.
///
/// shape: in (rows, columns) -> out (columns)
template <class T, class V = T>
PIPE_ONE_COPY void sum_columns(column_adder<T, V> add, arguments<T> const& a, V const* in,
                               extent rows, extent columns, T* out) {
  part_range const own = part_of(columns, column_alignment<T>, a.part, a.parts);
  add(in + own.begin, rows, own.size(), columns, out + own.begin, a.accumulate);
}

/// dw (+)= x^T dy. If group g has a prologue, which is the gradient of the bias: db (+)= sum over
/// rows of dy.
///
/// shape: x (rows, inner), dy (rows, columns) -> dw (inner, columns), db (columns)
/// law:   sums run over ascending rows, for any number of parts; accumulate adds the finished sum
///        once
/// cost:  2 * rows * inner * columns FLOPs. x is read by columns, so its columns are copied to
///        panels, or, for a few columns of dw, warm() first reads its rows into the cache, unless
///        they fit in L1. Of a very narrow dw the transpose is computed; see is_narrow_gradient.
template <class T, class V = T>
PIPE_ONE_COPY void multiply_transposed(value_products<T, V> const& set, arguments<T> const& a,
                                       detail::group const& g, extent rows,
                                       column_adder<T, V> add) {
  V const* const dy = a.template values<V>(g.in[1]);
  if (!g.prologue.empty())
    sum_columns<T, V>(add, a, dy, rows, g.columns, a.at(g.prologue[0].store));
  constexpr long near_cache = 32 * 1024;  // L1
  extent const inner = g.attributes.contraction().inner;
  // Row i of dw is computed from column i of x.
  part_range const own = part_of(inner, row_alignment, a.part, a.parts);
  if (own.size() == 0) return;
  strided<V const> const x{a.template values<V>(g.in[0]) + own.begin, 1, inner};
  bool const is_narrow = is_narrow_gradient(g.columns, set.tiles.lanes) && !set.slices(a.unit);
  if constexpr (in_place<T, V>)
    if (!is_narrow && rows * inner * long(sizeof(T)) > near_cache &&
        !left_panels_pay(own.size(), g.columns, rows, set.tiles.columns(), sizeof(T)))
      warm(x.data, rows, own.size(), inner);
  contraction_ends<T> dw;
  dw.c = a.at(g.out[0]) + own.begin * g.columns;
  dw.ldc = g.columns;
  dw.adds = a.accumulate;
  if (is_narrow) {
    dw.ldc = 1, dw.column = g.columns;
    return contract_values<T, V>(set, a.unit,
                                 {{g.columns, own.size(), rows}, {dy, 1, g.columns}, x.data, inner},
                                 dw, a.workspace);
  }
  contract_values<T, V>(set, a.unit, {{own.size(), g.columns, rows}, x, dy, g.columns}, dw,
                        a.workspace);
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
