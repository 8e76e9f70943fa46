// SPDX-License-Identifier: BSL-1.0
//
// Common parts of the kernels of losses: the rows of a loss, their weights, labels and further
// targets, and where a row's loss and gradient are written.
#pragma once

#include <pipe/backend/cuda/core/launch_rows.hpp>
#include <pipe/backend/cuda/rows/row_team.hpp>
#include <pipe/graph/further_loss.hpp>
#include <pipe/graph/layers.hpp>

namespace pp::cuda {

/// Rows of logits in memory, and the memory of their gradients, which may be the same.
template <class T, int Columns>
struct loss_memory {
  T const* logits;
  T* gradient;
  PIPE_HD PIPE_INLINE T const* at(extent row, int column) const {
    return logits + row * Columns + column;
  }
  template <int Count>
  PIPE_HD PIPE_INLINE void take(extent row, int column, float const (&v)[Count]) const {
    save<Count>(gradient + row * Columns + column, v);
  }
  PIPE_HD PIPE_INLINE void take_one(extent row, int column, float v) const {
    gradient[row * Columns + column] = T(v);
  }
};

/// Base of the kernels of losses: a team for each row keeps `Bytes` bytes of each element. Rows
/// of samples from valid_samples on have loss 0 and gradient 0; with Lengths there are no such
/// rows, and rows that are there write their losses at the places of their planned numbers.
template <class P, int G, int Bytes>
struct loss_rows {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns,
                       rows_per_sample = group_of<P, G>::value.rows;
  using of_rows = launch_rows<P, G>;
  static constexpr extent rows = of_rows::planned;
  using team = row_team<T, columns, Bytes>;
  static constexpr int threads = team::threads, each = team::each, resident = team::resident;
  static constexpr extent blocks = team::blocks(rows);
  static constexpr int logits = group_of<P, G>::value.in[0], labels = group_of<P, G>::value.in[1],
                       gradient = group_of<P, G>::value.out[0];

  /// Whether the loss is a further loss of the model: its gradients have a factor, and its rows
  /// follow the rows of earlier losses.
  static constexpr bool is_further =
      detail::is_further_loss(group_of<P, G>::value.leaf, typename P::leaves{});
  PIPE_HD PIPE_INLINE static detail::further_loss const* further(arguments const& a) {
    constexpr int leaf = group_of<P, G>::value.leaf;
    return a.run->further.find(leaf);
  }
  /// Whether the loss is a further loss in inference, which has no labels.
  PIPE_HD PIPE_INLINE static bool is_left_out([[maybe_unused]] arguments const& a) {
    if constexpr (is_further) return further(a) == nullptr;
    return false;
  }

  static constexpr bool is_weighted = group_of<P, G>::value.in[detail::op::loss_weights] >= 0;
  /// The weight of a row.
  PIPE_HD PIPE_INLINE static float weight(arguments const& a, extent row) {
    constexpr int weights = group_of<P, G>::value.in[detail::op::loss_weights];
    if constexpr (is_weighted) return a.at<float const>(weights)[row];
    return 1;
  }
  /// The factor of the gradient of a row.
  PIPE_HD PIPE_INLINE static float scale(arguments const& a, extent row) {
    float all = a.run->loss_scale * (a.scaling != nullptr ? *a.scaling : 1.0f);
    if constexpr (is_further) all *= float(further(a)->factor);
    return is_weighted ? all * weight(a, row) : all;
  }
  /// Writes a row's loss.
  PIPE_HD PIPE_INLINE static void put(arguments const& a, extent row, double loss) {
    if constexpr (is_further) row += extent(further(a)->rows_before) * P::samples;
    if constexpr (of_rows::vary)
      if (a.segments != nullptr) {
        detail::row_place const at = a.segments->place_of(row);
        row = at.segment * rows_per_sample + at.position;
      }
    a.loss[row] = loss;
  }
  /// Writes a row's loss, times the row's weight.
  PIPE_HD PIPE_INLINE static void put_loss(arguments const& a, extent row, double loss) {
    put(a, row, is_weighted ? double(weight(a, row)) * loss : loss);
  }
  /// Calls f with a pointer to the first number of each further target.
  template <class F>
  PIPE_HD PIPE_INLINE static auto with_targets(arguments const& a, F f) {
    constexpr int first = group_of<P, G>::value.in[detail::op::first_target];
    constexpr int second = group_of<P, G>::value.in[detail::op::first_target + 1];
    constexpr int third = group_of<P, G>::value.in[detail::op::first_target + 2];
    if constexpr (third >= 0)
      return f(a.at<float const>(first), a.at<float const>(second), a.at<float const>(third));
    else if constexpr (second >= 0)
      return f(a.at<float const>(first), a.at<float const>(second));
    else if constexpr (first >= 0)
      return f(a.at<float const>(first));
    else
      return f();
  }
  /// Whether a row is of a present sample; other rows are no part of a loss.
  PIPE_HD PIPE_INLINE static bool counts(arguments const& a, extent row) {
    return (of_rows::vary && a.segments != nullptr) ||
           row < extent(a.valid_samples) * rows_per_sample;
  }
  using memory = loss_memory<T, columns>;
  PIPE_HD PIPE_INLINE static memory in_memory(arguments const& a) {
    return memory{a.at<T const>(logits), a.at<T>(gradient)};
  }
  /// team::reduce of Count numbers. room(shared): its shared memory, which only a team of more than
  /// a warp needs.
  template <int Count, class Block, class Access, class Op, class Room>
  PIPE_HD PIPE_INLINE static void reduce(Block& block, Access access, Op op,
                                         [[maybe_unused]] Room room) {
    if constexpr (team::size > warp_size)
      team::reduce(block, access, op, room(block.shared()));
    else
      team::template reduce<Count>(block, access, op);
  }
  /// Writes loss 0 and gradient 0, for a row that is no part of the loss.
  template <class Logits>
  PIPE_HD PIPE_INLINE static void skip(arguments const& a, Logits const& x, extent row,
                                       int thread) {
    if (thread % team::size == 0) put(a, row, 0);
    if (!a.wants_gradient) return;
    team::for_pieces(thread, [&](int, int column) {
      float const nothing[each]{};
      x.template take<each>(row, column, nothing);
    });
  }
};

}  // namespace pp::cuda
