// SPDX-License-Identifier: BSL-1.0
//
// The pointwise ops of a kernel group on a few neighbouring elements of a row, in registers.
//
// A fused chain gives the bits of its ops as separate kernels. Each op reads the result of the
// previous one as memory would hold it. In 16 bits that result is rounded. In fp32, a result that
// may end in a product is sealed, so that the compiler does not contract this product and a
// following sum to one rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <pipe/backend/cuda/core/launch_rows.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/base/math.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/graph/slope_formula.hpp>

#ifdef __CUDACC__  // nvcc only warns of a user-defined formula that is for the host alone, and
                   // calls nothing
#pragma nv_diagnostic push
#pragma nv_diag_error 20011, 20013, 20014, 20015
#endif

namespace pp::cuda {

/// v, behind an operation that the compiler cannot remove: it does not know that `zero` is 0, so it
/// does not contract the product that computes v with the sum that reads v.
PIPE_HD PIPE_INLINE float seal(float v, unsigned zero) {
  return math::from_bits(math::bits(v) ^ zero);
}

/// The destination of results that are read outside their group: memory, for all of them.
struct all_stores {
  /// Writes v to elements [at, at + Count) of operand Index.
  template <int Index, class T, int Count>
  PIPE_HD PIPE_INLINE void take(arguments const& a, extent at, float const (&v)[Count]) const {
    save<Count>(a.at<T>(Index) + at, v);
  }
};

/// The epilogue or the prologue of group G of pipeline P, on rows of `width` elements.
///
/// shape: second operands (rows, width), of a bias (width) or of a table of positions (T, width) ->
///        a matrix (rows, width) for each stored op
/// law:   the bits of the ops as separate kernels
/// work:  the caller's: a thread runs all ops on Count neighbouring elements of a row, in accesses
///        of up to 16 bytes
template <class P, int G, bool IsEpilogue>
struct chain {
  using T = typename P::element;
  using leaves = typename P::leaves;
  static constexpr int count(detail::group const& g) {
    return int(IsEpilogue ? g.epilogue.size() : g.prologue.size());
  }
  static constexpr int length = count(group_of<P, G>::value);
  static constexpr int width = IsEpilogue || group_of<P, G>::value.anchor != op_kind::matmul
                                   ? group_of<P, G>::value.columns
                                   : group_of<P, G>::value.attributes.contraction().inner;

  /// Op Index as a constant of its own: device code cannot index a member array of a constant.
  template <int Index>
  struct pointwise_at {
    static constexpr detail::pointwise_op value = IsEpilogue
                                                      ? group_of<P, G>::value.epilogue.items[Index]
                                                      : group_of<P, G>::value.prologue.items[Index];
  };

  /// Whether the value that enters op Index may end in a product; Index == length: the value that
  /// leaves the chain.
  template <int Index>
  static constexpr bool seals() {
    if constexpr (Index == 0)
      return IsEpilogue && length > 0 &&
             detail::has<&detail::op_traits::ends_in_product>(group_of<P, G>::value.anchor);
    else
      return detail::is_by_leaf(pointwise_at<Index - 1>::value.kind) ||
             detail::has<&detail::op_traits::ends_in_product>(pointwise_at<Index - 1>::value.kind);
  }
  template <int Index>
  static constexpr bool is_sealed = seals<Index>();
  /// Whether the value that enters op Index must be rounded; Index == length: the value that leaves
  /// the chain. Values from memory are rounded already, and a value that leaves an epilogue is
  /// rounded when it is stored. The bias of a matmul is added to the unrounded sum, and an op that
  /// is joined to the product reads the unrounded sum.
  template <int Index>
  static constexpr bool rounds() {
    constexpr op_kind anchor = group_of<P, G>::value.anchor;
    if constexpr (sizeof(T) >= sizeof(float) || length == 0 || (Index == length && IsEpilogue))
      return false;
    else if constexpr (Index < length && joins<Index>())
      return false;
    else if constexpr (Index == 0)
      return IsEpilogue && anchor != op_kind::pointwise &&
             !(anchor == op_kind::matmul && pointwise_at<0>::value.kind == op_kind::bias);
    else
      return true;
  }
  template <int Index>
  static constexpr bool joins() {
    return pointwise_at<Index>::value.is_joined;
  }
  template <int Index>
  static constexpr bool is_rounded = rounds<Index>();

  /// The index of the slopes of op Index, a prelu or its gradient.
  template <int Index>
  static constexpr int slopes =
      pointwise_at<Index>::value.operand + detail::has_third(pointwise_at<Index>::value.kind);

  /// The second operands of all ops, for Count elements of a row.
  template <int Count>
  struct seconds {
    fetched<T, Count> of[length > 0 ? length : 1];
  };
  /// Reads the second operands for elements [column, column + Count) of a row, except for op
  /// Skipped. No op of the group writes a second operand, so they may be read before the elements
  /// are computed.
  ///
  /// needs: column and width are multiples of Count; `row` counts the rows of all samples
  template <int Count, int Skipped = -1>
  PIPE_HD PIPE_INLINE static void fetch(arguments const& a, extent row, int column,
                                        seconds<Count>& z) {
    fetch_all<Skipped>(a, row, column, z, std::make_index_sequence<std::size_t(length)>{});
  }

  /// Runs all ops on v, elements [column, column + Count) of a row; the result of an op is stored
  /// if it is read outside the group.
  ///
  /// needs: as fetch, which must have read z
  template <int Count, class Stores = all_stores>
  PIPE_HD PIPE_INLINE static void run(arguments const& a, extent row, int column, float (&v)[Count],
                                      seconds<Count> const& z, Stores const& stores = {}) {
    run_ops(a, row, column, v, z, stores, std::make_index_sequence<std::size_t(length)>{});
  }
  /// The same, with a fetch before it.
  template <int Count>
  PIPE_HD PIPE_INLINE static void run(arguments const& a, extent row, int column,
                                      float (&v)[Count]) {
    seconds<Count> z;
    fetch(a, row, column, z);
    run(a, row, column, v, z);
  }

 private:
  template <int Skipped, int Count, std::size_t... Is>
  PIPE_HD PIPE_INLINE static void fetch_all([[maybe_unused]] arguments const& a,
                                            [[maybe_unused]] extent row,
                                            [[maybe_unused]] int column,
                                            [[maybe_unused]] seconds<Count>& z,
                                            std::index_sequence<Is...>) {
    (fetch_one<int(Is), (int(Is) == Skipped)>(a, row, column, z.of[Is]), ...);
  }
  template <int Index, bool IsSkipped, int Count>
  PIPE_HD PIPE_INLINE static void fetch_one([[maybe_unused]] arguments const& a,
                                            [[maybe_unused]] extent row,
                                            [[maybe_unused]] int column,
                                            [[maybe_unused]] fetched<T, Count>& z) {
    constexpr detail::pointwise_op s = pointwise_at<Index>::value;
    if constexpr (!IsSkipped && s.kind != op_kind::map && s.kind != op_kind::dropout &&
                  s.kind != op_kind::prelu) {
      extent const at = s.kind == op_kind::bias ? extent(column)
                        : s.kind == op_kind::row_bias
                            ? launch_rows<P, G>::place_of(a, row).position * width + column
                            : row * width + column;
      z.load(a.at<T const>(s.operand) + at);
    }
  }

  template <int Count, class Stores, std::size_t... Is>
  PIPE_HD PIPE_INLINE static void run_ops([[maybe_unused]] arguments const& a,
                                          [[maybe_unused]] extent row, [[maybe_unused]] int column,
                                          [[maybe_unused]] float (&v)[Count],
                                          [[maybe_unused]] seconds<Count> const& z,
                                          [[maybe_unused]] Stores const& stores,
                                          std::index_sequence<Is...>) {
    (apply<Count, int(Is)>(a, row, column, v, z.of[Is], stores), ...);
    finish_value<Count, length>(a, v);
  }

  /// Rounds or seals the value that enters op Index, if rounds() or seals() is true.
  template <int Count, int Index>
  PIPE_HD PIPE_INLINE static void finish_value([[maybe_unused]] arguments const& a,
                                               [[maybe_unused]] float (&v)[Count]) {
    if constexpr (is_rounded<Index> && Count % 2 == 0) {
      PIPE_UNROLL
      for (int i = 0; i < Count; i += 2) {
        unsigned const both = pack<T>(v[i], v[i + 1]);
        v[i] = unpack<T>(both, 0), v[i + 1] = unpack<T>(both, 1);
      }
    } else if constexpr (is_rounded<Index>) {
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) v[i] = as_stored<T>(v[i]);
    } else if constexpr (is_sealed<Index>) {
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) v[i] = seal(v[i], a.zero);
    }
  }

  template <int Count, int Index, class Stores>
  PIPE_HD PIPE_INLINE static void apply(arguments const& a, extent row, int column,
                                        float (&v)[Count],
                                        [[maybe_unused]] fetched<T, Count> const& z,
                                        [[maybe_unused]] Stores const& stores) {
    constexpr detail::pointwise_op s = pointwise_at<Index>::value;
    finish_value<Count, Index>(a, v);
    if constexpr (s.kind == op_kind::map) {
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) v[i] = detail::leaf_at<s.leaf, leaves>::forward(v[i]);
    } else if constexpr (s.kind == op_kind::dropout) {
      float factor[Count];
      keep<Count, detail::leaf_at<s.leaf, leaves>>(a, *a.ids(s.operand), row, column, factor);
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) v[i] = v[i] * factor[i];
    } else if constexpr (s.kind == op_kind::prelu || s.kind == op_kind::prelu_gradient) {
      float slope[Count];
      load_slopes<detail::leaf_at<s.leaf, leaves>::is_shared>(a.at<T const>(slopes<Index>), column,
                                                              slope);
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i)
        if constexpr (s.kind == op_kind::prelu)
          v[i] = detail::slope_formula::forward(v[i], slope[i]);
        else
          v[i] = detail::slope_formula::input_gradient(v[i], z[i], slope[i]);
    } else {
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i)
        if constexpr (s.kind == op_kind::map_gradient)
          v[i] = v[i] * detail::leaf_at<s.leaf, leaves>::derivative(z[i]);
        else if constexpr (s.kind == op_kind::multiply)
          v[i] = v[i] * z[i];
        else
          v[i] = v[i] + z[i];
    }
    if constexpr (s.store >= 0) stores.template take<s.store, T>(a, row * width + column, v);
  }

  /// The slopes of Count neighbouring columns; shared: the one slope of all columns.
  template <bool IsShared, int Count>
  PIPE_HD PIPE_INLINE static void load_slopes(T const* from, [[maybe_unused]] int column,
                                              float (&slope)[Count]) {
    if constexpr (IsShared) {
      float one[1];
      load<1>(from, one);
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) slope[i] = one[0];
    } else {
      load<Count>(from + column, slope);
    }
  }

  /// Factors of a dropout, with the bits of the host: four neighbouring elements share a block of
  /// Philox, and each row begins with a new block. Where channels are dropped, all rows of a sample
  /// share blocks; where whole samples are dropped, all elements of a sample share one word.
  template <int Count, class Layer>
  PIPE_HD PIPE_INLINE static void keep(arguments const& a, int stream, extent row, int column,
                                       float (&factor)[Count]) {
    constexpr int blocks = (width + 3) / 4;
    constexpr float kept = Layer::template scale<float>();
    if (!a.training) {
      for (int i = 0; i < Count; ++i) factor[i] = 1;
      return;
    }
    detail::row_place const at = launch_rows<P, G>::place_of(a, row);
    extent const first_sample = a.run->first_sample + launch_rows<P, G>::first_sample(a);
    detail::philox_block bits{};
    PIPE_UNROLL
    for (int i = 0; i < Count; ++i) {
      int const c = Layer::all_columns ? 0 : column + i;
      extent const position = Layer::all_rows ? 0 : at.position;
      if (i == 0 || (!Layer::all_columns && c % 4 == 0))
        bits = detail::philox(
            detail::philox_block{{static_cast<std::uint32_t>(position * blocks + c / 4),
                                  static_cast<std::uint32_t>(first_sample + at.segment),
                                  static_cast<std::uint32_t>(stream),
                                  static_cast<std::uint32_t>(a.run->step)}},
            static_cast<std::uint32_t>(a.run->seed), static_cast<std::uint32_t>(a.run->seed >> 32));
      int const w = c % 4;
      std::uint32_t const word = w == 0   ? bits.word[0]
                                 : w == 1 ? bits.word[1]
                                 : w == 2 ? bits.word[2]
                                          : bits.word[3];
      factor[i] = word < Layer::drops_below ? 0.0f : kept;
    }
  }
};

/// The end of a piece of the anchor's row: stores the piece if it is read outside the group, then
/// runs the epilogue on it.
///
/// shape: v (Count) -> elements [column, column + Count) of row `row` of the result and of each
///        stored op
/// needs: column and the columns of the group are multiples of Count
template <class P, int G, int Count, class Stores = all_stores>
PIPE_HD PIPE_INLINE void finish(arguments const& a, extent row, int column, float (&v)[Count],
                                typename chain<P, G, true>::template seconds<Count> const& z,
                                Stores const& stores = {}) {
  constexpr detail::group g = group_of<P, G>::value;
  if constexpr (g.out[0] >= 0)
    stores.template take<g.out[0], typename P::element>(a, row * g.columns + column, v);
  chain<P, G, true>::run(a, row, column, v, z, stores);
}
/// The same, with a fetch of the epilogue's second operands before it.
template <class P, int G, int Count>
PIPE_HD PIPE_INLINE void finish(arguments const& a, extent row, int column, float (&v)[Count]) {
  typename chain<P, G, true>::template seconds<Count> z;
  chain<P, G, true>::fetch(a, row, column, z);
  finish<P, G>(a, row, column, v, z);
}

}  // namespace pp::cuda

#ifdef __CUDACC__
#pragma nv_diagnostic pop
#endif
