// SPDX-License-Identifier: BSL-1.0
//
// A kernel group around a matrix product c[M, N] = a[M, K] b[K, N]: which operands are a and b, and
// what is done with c.
#pragma once

#include <utility>

#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/matmul/contraction_plan.hpp>
#include <pipe/base/bytes.hpp>

namespace pp::cuda {

/// The end of a product c[Rows, columns of the group]: the epilogue, or the store of a gradient.
///
/// MakesWeight: c is the gradient of a weight. If the group has a prologue, which is then the
/// gradient of a bias, row number `Rows` of c is that gradient
template <class P, int G, bool MakesWeight, extent Rows>
struct product_end {
  using T = typename P::element;
  static constexpr bool makes_weight = MakesWeight;
  static constexpr int columns = group_of<P, G>::value.columns;
  static constexpr bool has_prologue = group_of<P, G>::value.prologue.size() > 0;
  /// Whether c has one more row, the gradient of a bias: the row of an x that is always 1.
  static constexpr bool sums_bias = makes_weight && has_prologue;
  /// The index of the operand to which the last op of a prologue is stored, or -1.
  static constexpr int stored =
      has_prologue ? group_of<P, G>::value.prologue
                         .items[has_prologue ? group_of<P, G>::value.prologue.size() - 1 : 0]
                         .store
                   : -1;

  /// The numbers that `take` reads for Count elements of a row: the gradient of earlier
  /// micro-batches, or the second operands of the epilogue.
  template <int Count>
  using before = std::conditional_t<makes_weight, fetched<float, Count>,
                                    typename chain<P, G, true>::template seconds<Count>>;
  /// Reads these numbers. needs: as take, which has not been called for these elements
  template <int Count>
  PIPE_HD PIPE_INLINE static void fetch(arguments const& a, extent row, int column,
                                        before<Count>& z) {
    if constexpr (!makes_weight)
      chain<P, G, true>::fetch(a, row, column, z);
    else if (a.accumulate)
      z.load(gradient_at(a, row, column));
  }

  /// Takes finished elements [column, column + Count) of a row: stores a weight's gradient, or adds
  /// it to the gradient of earlier micro-batches; runs the epilogue on other results.
  ///
  /// needs: column is a multiple of Count; row `Rows` is the gradient of the bias; z is fetched
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent row, int column,
                                       float (&v)[Count], before<Count> const& z) {
    if constexpr (makes_weight) {
      if (a.accumulate) {
        PIPE_UNROLL
        for (int i = 0; i < Count; ++i) v[i] = z[i] + v[i];
      }
      save<Count>(gradient_at(a, row, column), v);
    } else {
      finish<P, G>(a, row, column, v, z);
    }
  }
  /// The same, with a fetch before it.
  template <int Count>
  PIPE_HD PIPE_INLINE static void take(arguments const& a, extent row, int column,
                                       float (&v)[Count]) {
    before<Count> z;
    fetch<Count>(a, row, column, z);
    take<Count>(a, row, column, v, z);
  }

  /// Calls read(matrix) for every matrix [M, N] that `take` reads.
  template <class Read>
  PIPE_HD PIPE_INLINE static void each_matrix_read([[maybe_unused]] arguments const& a,
                                                   [[maybe_unused]] Read read) {
    constexpr detail::group g = group_of<P, G>::value;
    if constexpr (makes_weight) {
      if (a.accumulate) read(a.at<float const>(g.out[0]));
    } else {
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        (each_matrix_read<int(Is)>(a, read), ...);
      }(std::make_index_sequence<std::size_t(chain<P, G, true>::length)>{});
    }
  }

 private:
  /// The address of an element of the weight's gradient, or, in the last row, of the bias's.
  PIPE_HD PIPE_INLINE static float* gradient_at(arguments const& a, extent row, int column) {
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int bias = stored < 0 ? 0 : stored;
    return sums_bias && row == Rows ? a.at<float>(bias) + column
                                    : a.at<float>(g.out[0]) + row * columns + column;
  }

  template <int Index, class Read>
  PIPE_HD PIPE_INLINE static void each_matrix_read([[maybe_unused]] arguments const& a,
                                                   [[maybe_unused]] Read read) {
    constexpr detail::pointwise_op s = chain<P, G, true>::template pointwise_at<Index>::value;
    if constexpr (s.kind == op_kind::add || s.kind == op_kind::multiply ||
                  s.kind == op_kind::map_gradient || s.kind == op_kind::prelu_gradient)
      read(a.at<T const>(s.operand));
  }
};

/// The shape of the product of a group: a matmul, or a gradient of one.
constexpr product_shape shape_of_product(detail::group const& g, int samples) {
  extent const rows = extent(g.rows) * samples, inner = g.attributes.contraction().inner;
  return g.anchor == op_kind::matmul_weight_gradient ? product_shape{inner, g.columns, rows}
                                                     : product_shape{rows, g.columns, inner};
}

/// The product c = a b of group G, as the kernels of tiles read it.
///
/// shape: matmul, input gradient: a (rows, inner), b (inner, columns) -> c (rows, columns), where b
///        may be in memory as (columns, inner); weight gradient: a = x^T (inner, rows), b = dy
///        (rows, columns) -> c (inner, columns), with db as one more row
template <class P, int G>
struct contraction
    : product_end<P, G, group_of<P, G>::value.anchor == op_kind::matmul_weight_gradient,
                  shape_of_product(group_of<P, G>::value, P::samples).rows> {
  using T = typename P::element;
  static constexpr op_kind anchor = group_of<P, G>::value.anchor;
  static constexpr bool makes_weight = anchor == op_kind::matmul_weight_gradient;
  static constexpr bool has_prologue = group_of<P, G>::value.prologue.size() > 0;
  static constexpr bool makes_left = !makes_weight && has_prologue;
  /// Whether b is in memory as (columns, inner).
  static constexpr bool transposes_right =
      group_of<P, G>::value.attributes.contraction().is_transposed;
  static constexpr product_format format = product_of<P>();
  static constexpr product_shape shape = shape_of_product(group_of<P, G>::value, P::samples);
  /// The number of products side by side in c, each with shape.columns columns: for the groups of a
  /// convolution.
  static constexpr int products = 1;
  using product_end<P, G, makes_weight, shape.rows>::stored;
  static constexpr long left_bytes =
      makes_left && stored < 0 ? detail::align_up(long(shape.rows * shape.inner) * long(sizeof(T)))
                               : 0;
  /// Elements of a row of c in one access.
  static constexpr int each =
      makes_weight ? access_width<float>(int(shape.columns)) : access_width<T>(int(shape.columns));

  PIPE_HD PIPE_INLINE static T* made_left(arguments const& a) {
    return stored >= 0 ? a.at<T>(stored < 0 ? 0 : stored) : static_cast<T*>(a.workspace);
  }
  PIPE_HD PIPE_INLINE static T const* left(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    return makes_left ? made_left(a) : a.at<T const>(g.in[0]);
  }
  PIPE_HD PIPE_INLINE static T const* right(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    return a.at<T const>(g.in[1]);
  }
};

}  // namespace pp::cuda
