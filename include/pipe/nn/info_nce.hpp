// SPDX-License-Identifier: BSL-1.0
//
// A loss that tells the partner of each row from the partners of all other rows of a micro-batch.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/nn/loss_option.hpp>
#include <pipe/nn/ratio.hpp>

namespace pp {

/// An option of InfoNCE: the mean of the losses of both directions, as CLIP's.
struct Symmetric {
  static constexpr auto option = detail::option_kind::symmetry;
};

/// Of rows (a, b), the cross entropy of a row's scores a b_j / temperature with the b_j of all rows
/// of the micro-batch, where its own b is the right class; the mean over the rows of the
/// mini-batch. Symmetric: the mean of this and of the same with a and b exchanged. temperature =
/// Numerator / Denominator > 0. There are no labels: batches are made of inputs alone.
///
///     ConcatOf<Seq<Picture, Normalize>, Seq<Named<"text", Tokens<...>>, Text, Normalize>>,
///     InfoNCE<7, 100, Symmetric>
///
/// shape:   (..., 2 C)
/// options: Symmetric, Reduction
/// law:     depends on the size of micro-batches, and on nothing else of a plan: rows of other
///          micro-batches, replicas and processes are not read. Samples that only fill up a
///          micro-batch are in no sum
/// error:   micro_batch_contrasts_one_row
/// source:  van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018;
///          Radford et al., Learning Transferable Visual Models From Natural Language Supervision,
///          2021, figure 3
template <auto Numerator = 1, int Denominator = 1, class... Options>
struct InfoNCE : detail::loss_with<Options...> {
  using formula = InfoNCE;
  using temperature = detail::ratio<Numerator, Denominator>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::symmetry, detail::option_kind::reduction);
  static constexpr bool labels_are_ids = false;
  static constexpr bool is_symmetric =
      !std::is_void_v<detail::option_of<detail::option_kind::symmetry, Options...>>;
  /// The numbers of a label of a row.
  static constexpr int row_labels(int) { return 0; }
  /// 1 / temperature
  template <class T>
  PIPE_HD static constexpr T factor() {
    return T(temperature::denominator) / T(temperature::numerator);
  }
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !b.needs_ratio(temperature::in(temperature::positive()))) return;
    detail::handle const x = b.current();
    if (x.form.columns() % 2 != 0)
      return b.report(wrong::contrast_needs_two_equal_parts, sample_shape(),
                      sample_shape(x.form.columns()));
    detail::loss_operands in;
    in.reads_labels = false;
    // The second read keeps x: a gradient may overwrite what only its loss reads, once.
    in.target[0] = x.at;
    b.loss(op_kind::contrast, x, in);
  }
};

}  // namespace pp
