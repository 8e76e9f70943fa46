// SPDX-License-Identifier: BSL-1.0
//
// A loss by a formula of each row of the model's output, which sees all numbers of the row at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>

#include <pipe/base/constant.hpp>
#include <pipe/base/custom.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/nn/loss_option.hpp>

namespace pp {

namespace detail {

/// Whether F has the functions of a loss by rows, with these further numbers of a row.
template <class F, class... T>
concept has_row_value = requires(custom::row<float const> x, T... more) {
  { F::value(x, x, more...) } -> std::same_as<float>;
};
template <class F, class... T>
concept has_row_slopes = requires(custom::row<float const> x, custom::row<float> to, T... more) {
  F::slopes(x, x, more..., to);
};
/// The member that F lacks as a formula of rows with that number of Targets, or `none`.
template <class F, int Targets>
constexpr wrong::member missing_of_row_loss() {
  return []<std::size_t... Is>(std::index_sequence<Is...>) {
    if constexpr (!has_row_value<F, decltype(float(Is))...>)
      return wrong::member::value;
    else
      return has_row_slopes<F, decltype(float(Is))...> ? wrong::member::none
                                                       : wrong::member::slopes;
  }(std::make_index_sequence<std::size_t(Targets)>{});
}

}  // namespace detail

/// A loss by a formula of each row of the output. F derives from it and has two static functions,
/// both marked PIPE_HD PIPE_INLINE:
///
///     template <class T> static T value(custom::row<T const> x, custom::row<T const> label);
///     template <class T> static void slopes(custom::row<T const> x, custom::row<T const> label,
///                                           custom::row<T> to);   // all of to[i] = dvalue / dx[i]
///
/// Numbers of the Targets stand behind the label, one for each row. `static constexpr int labels`
/// is how many numbers a row's label has: without it as many as the row, 0 for a loss without
/// labels, whose batches are made of the inputs alone. The loss is the mean over the rows of the
/// mini-batch. docs/howto/own_losses.md shows how to write and check one. (An F that does not
/// derive from it is written `RowLoss<F>` in the model.)
///
/// shape: (..., C), labels: numbers (..., F::labels)
/// options: Target, Weights, Reduction
/// cost:  on a GPU one thread computes a row: for rows of some hundred numbers
template <class F, class... Options>
struct RowLoss : detail::loss_with<Options...> {
  using formula = F;
  using with = detail::loss_with<Options...>;
  static constexpr auto takes = detail::option_kinds(
      detail::option_kind::target, detail::option_kind::weights, detail::option_kind::reduction);
  static constexpr bool labels_are_ids = false;
  /// The numbers of a label of a row of `columns` numbers.
  static constexpr int row_labels(int columns) {
    if constexpr (requires { F::labels; })
      return F::labels;
    else
      return columns;
  }
  template <class Builder>
  static constexpr void describe(Builder& b) {
    constexpr wrong::member missing = detail::missing_of_row_loss<F, with::targets>();
    if constexpr (missing != wrong::member::none) {
      b.report_missing(wrong::loss_needs_value_and_slope, missing);
    } else if constexpr (
        requires { F::labels; } &&
        !requires { typename detail::constants<detail::is_read(F::labels)>; }) {
      b.report_value(wrong::member::labels);
    } else if (b.needs_numbers()) {
      int const labels = row_labels(b.current().form.columns());
      if (labels < 0 && !b.needs_positive(labels)) return;
      detail::loss_operands in = with::further_inputs(b, sample_shape(b.current().form.rows()));
      in.reads_labels = labels > 0;
      b.loss(op_kind::row_loss, b.current(), in);
    }
  }
};

}  // namespace pp
