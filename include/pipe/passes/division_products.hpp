// SPDX-License-Identifier: BSL-1.0
//
// The rules of division of the ops that have most of the weights: tables, products, convolutions.
#pragma once

#include <pipe/passes/division_tools.hpp>

namespace pp::detail {

/// Base of the rules.
class division_products : protected division_tools {
 public:
  using division_tools::division_tools;

 protected:
  /// The op whole, by every plane.
  constexpr void by_every_plane() {
    gather_all();
    y_ = as_[0].is(division_type::replicated) ? replicated_value : whole_value;
    for (int k = 1; k < was_.ins; ++k)
      if (is_parameter(was_.in[k]) || was_.in[k].where == space::buffer)
        keep_parameter(was_.in[k], y_.is(division_type::replicated));
  }
  /// The op by rows, with whole parameters. d: the division of the result
  constexpr void by_rows_as(value_division const& d) {
    y_ = d;
    for (int k = 1; k < was_.ins; ++k)
      if (is_parameter(was_.in[k])) keep_parameter(was_.in[k], true);
  }
  /// Columns of operand k, if every row is divided alike; no blocks otherwise.
  constexpr blocks columns(int k) const { return as_[k].columns(shape_of_operand(was_, k).rows); }
  /// Rows of operand k, if planes have whole rows; no blocks otherwise.
  constexpr blocks rows(int k) const {
    return as_[k].rows(shape_of_operand(was_, k).columns, planes_);
  }
  static constexpr bool is_range(blocks const& b) { return b.count == 1 && b.is_one_run(); }

  // ---- tables and products ----

  /// The rows of the table are divided; a vocabulary that planes do not divide is padded.
  constexpr void lookup() {
    lookup_attributes of = was_.attributes.lookup();
    operand const table = was_.in[1];
    if (how_ == operand_reading::whole || of.vocabulary < planes_ ||
        !may_divide(table, axis::rows)) {
      by_every_plane();
      return;
    }
    divide_parameter(table, axis::rows, blocks{1, of.vocabulary});
    of.vocabulary = part_of(of.vocabulary, planes_);
    x_.attributes = of;
    y_ = partial_value;
  }
  /// y[R, N] = x[R, K] w. A transposed parameter has rows for columns of w.
  constexpr void product() {
    contraction_attributes of = was_.attributes.contraction();
    int const K = of.inner, N = was_.columns;
    operand const w = was_.in[1];
    axis const along_n = of.is_transposed ? axis::rows : axis::columns,
               along_k = of.is_transposed ? axis::columns : axis::rows;
    op_note const term = ops_[index_];
    bool const base_has_columns = term.base >= 0 && ops_[term.base].by_columns,
               is_free = how_ == operand_reading::free;
    if (is_free && term.low_rank == op_note::term::first && base_has_columns) {
      take(0, replicated_value);
      keep_parameter(w, true);
      y_ = replicated_value;
      return;
    }
    if ((is_free || how_ == operand_reading::columns) && may_divide(w, along_k)) {
      if (is_free && was_gathered(0) && K % planes_ == 0) take(0, divided_by(blocks{was_.rows, K}));
      if (blocks const in = columns(0); in.exist()) {
        divide_parameter(w, along_k, in);
        of.inner = int(in.elements_of_part(planes_));
        x_.attributes = of;
        y_ = partial_value;
        return;
      }
    }
    blocks const runs = runs_of(result(), N);
    bool const is_even = runs.divide_into(planes_) ||
                         (result().is_padded && runs.is_one_run() && N >= planes_),
               follows_rows =
                   term.low_rank == op_note::term::second && !base_has_columns && rows(0).exist();
    if ((is_free ? !follows_rows : how_ == operand_reading::replicated) && is_even &&
        may_divide(w, along_n)) {
      take(0, replicated_value);
      divide_parameter(w, along_n, runs);
      ops_[index_].by_columns = true;
      y_ = divided_by(runs.with_count(was_.rows));
      return;
    }
    if (rows(0).exist())
      by_rows_as(divided_by(as_[0].of.scaled(N, K)));
    else
      by_every_plane();
  }
  constexpr void convolution() {
    convolution_attributes of = was_.attributes.convolution();
    operand const w = was_.in[1];
    blocks const runs = of.groups == 1 ? runs_of(result(), of.filters) : blocks{1, of.filters};
    int const divisor = of.groups == 1 ? planes_ : of.groups;
    if (how_ == operand_reading::whole || divisor % planes_ != 0 || !runs.divide_into(planes_) ||
        !may_divide(w, axis::columns)) {
      by_every_plane();
      return;
    }
    if (of.groups == 1) {
      take(0, replicated_value);
    } else {
      take(0, divided_by(blocks{of.in_rows(), of.channels}));
      of.groups /= planes_;
      of.channels /= planes_;
    }
    of.filters /= planes_;
    x_.attributes = of;
    divide_parameter(w, axis::columns, runs);
    y_ = divided_by(runs.with_count(was_.rows));
  }
  /// The channels of the result are divided: for each tap these are rows of w, or columns' groups.
  constexpr void transposed_convolution() {
    convolution_attributes of = was_.attributes.convolution();
    operand const w = was_.in[1];
    bool const has_groups = of.groups > 1;
    axis const along = has_groups ? axis::columns : axis::rows;
    if (how_ == operand_reading::whole || (has_groups ? of.groups : of.channels) % planes_ != 0 ||
        !may_divide(w, along)) {
      by_every_plane();
      return;
    }
    y_ = divided_by(blocks{was_.rows, of.channels});
    if (has_groups) {
      take(0, divided_by(blocks{of.out_rows(), of.filters}));
      divide_parameter(w, along, blocks{1, of.filters});
      of.groups /= planes_;
      of.filters /= planes_;
    } else {
      take(0, replicated_value);
      divide_parameter(w, along, blocks{of.taps(), of.channels});
    }
    of.channels /= planes_;
    x_.attributes = of;
  }
};

}  // namespace pp::detail
