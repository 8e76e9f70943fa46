// SPDX-License-Identifier: BSL-1.0
//
// The rules of division, one per kind of forward op: from the types of the operands to the op
// of one plane, its parameters' boxes and the type of its result. The rules of gradients
// follow from these by differentiation.
#pragma once

#include <pipe/passes/division_products.hpp>

namespace pp::detail {

/// Applies the rule of an op.
class division_rules : protected division_products {
 public:
  using division_products::division_products;

 protected:
  /// Divides op i:
  ///
  ///   lookup      rows of the table are divided; other planes' ids give 0, so the result is
  ///   partial matmul      column-parallel: weights by columns, x whole, y divided by columns;
  ///               row-parallel: weights by rows, x divided by columns, y partial
  ///   convolution filters are divided, or groups
  ///   bias, map, add: any division; norm: by rows; batch_norm: by columns
  ///   attention   by heads; gate: both halves alike; cross_entropy: by columns of the vocabulary
  ///
  /// An op that cannot take a divided operand is computed whole by every plane.
  constexpr void divide_op(int i, operand_reading how) {
    begin(i, how);
    if (planes_ == 1) return finish(whole_value);
    read_as_told();
    rule();
    operand_shape const shape{was_.rows, was_.columns};
    finish(y_.is(division_type::partial) ? stream(shape) : y_);
  }

 private:
  constexpr void rule() {
    switch (was_.kind) {
      case op_kind::lookup:
      case op_kind::bag: return lookup();
      case op_kind::matmul: return product();
      case op_kind::convolution: return convolution();
      case op_kind::convolution_input_gradient: return transposed_convolution();
      case op_kind::bias:
      case op_kind::map:
      case op_kind::prelu: return pointwise();
      case op_kind::row_bias: return row_bias();
      case op_kind::dropout: return one_run();
      case op_kind::add:
      case op_kind::multiply: return pair();
      case op_kind::concat: return concat();
      case op_kind::slice: return slice();
      case op_kind::norm:
      case op_kind::response_norm:
      case op_kind::softmax: return by_whole_rows();
      case op_kind::batch_statistics:
      case op_kind::batch_norm: return batch_norm();
      case op_kind::group_norm: return group_norm();
      case op_kind::gate: return gate();
      case op_kind::pool:
      case op_kind::resample: return cells();
      case op_kind::transpose: return transpose();
      case op_kind::row_dot: return row_dot();
      case op_kind::row_scale: return row_scale();
      case op_kind::attention: return attention();
      case op_kind::cross_entropy: return cross_entropy();
      case op_kind::squared_error:
      case op_kind::element_loss: return one_run();
      case op_kind::row_loss: return rows_of_loss();
      case op_kind::contrast:
      case op_kind::custom: return by_every_plane();
      case op_kind::none:  // what follows is in no undivided forward graph
      case op_kind::exchange:
      case op_kind::cross_entropy_statistics:
      case op_kind::matmul_input_gradient:
      case op_kind::map_gradient:
      case op_kind::prelu_gradient:
      case op_kind::norm_gradient:
      case op_kind::batch_sums:
      case op_kind::batch_norm_gradient:
      case op_kind::group_norm_gradient:
      case op_kind::response_norm_gradient:
      case op_kind::softmax_gradient:
      case op_kind::gate_gradient:
      case op_kind::pool_gradient:
      case op_kind::resample_gradient:
      case op_kind::attention_gradient:
      case op_kind::custom_input_gradient:
      case op_kind::matmul_weight_gradient:
      case op_kind::convolution_weight_gradient:
      case op_kind::bias_gradient:
      case op_kind::row_bias_gradient:
      case op_kind::prelu_parameter_gradient:
      case op_kind::norm_parameter_gradient:
      case op_kind::batch_parameter_gradient:
      case op_kind::batch_running_sums:
      case op_kind::group_parameter_gradient:
      case op_kind::lookup_gradient:
      case op_kind::bag_gradient:
      case op_kind::custom_weight_gradient:
      case op_kind::custom_statistics:
      case op_kind::pointwise: break;
    }
    op_kind_without::division_rule(was_.kind);
  }

  // ---- element by element ----

  /// Any division; a parameter of one row is divided as the columns are.
  constexpr void pointwise() {
    if (as_[0].is(division_type::whole)) has_gathered_ = was_gathered(0);
    operand const p = was_.ins > 1 ? was_.in[1] : operand{};
    bool const has_column = was_.kind == op_kind::bias ||
                            (was_.kind == op_kind::prelu && !was_.attributes.slope().is_shared);
    if (!as_[0].is_divided()) return by_every_plane();
    if (!has_column) return by_rows_as(as_[0]);
    if (blocks const c = columns(0); c.exist() && may_divide(p, axis::columns)) {
      divide_parameter(p, axis::columns, c);
      y_ = as_[0];
    } else if (!c.exist() && rows(0).exist()) {
      by_rows_as(as_[0]);
    } else {
      by_every_plane();
    }
  }
  /// A table with a row for each row of x.
  constexpr void row_bias() {
    if (as_[0].is(division_type::whole)) has_gathered_ = was_gathered(0);
    blocks const c = columns(0), r = rows(0);
    axis const along = c.exist() ? axis::columns : axis::rows;
    if ((!c.exist() && !r.exist()) || !may_divide(was_.in[1], along)) return by_every_plane();
    divide_parameter(was_.in[1], along, c.exist() ? c : r);
    y_ = as_[0];
  }
  /// A kernel that finds its rows or columns in the whole by the number of the first one: the bits
  /// of a dropout, the targets of a loss.
  constexpr void one_run() {
    if (as_[0].is(division_type::whole)) has_gathered_ = was_gathered(0);
    for (int k = 1; k < was_.ins; ++k) gather(k);
    if (as_[0].is_divided() && (is_range(columns(0)) || is_range(rows(0))))
      y_ = as_[0];
    else
      by_every_plane();
  }
  /// Two operands in one division: that of the first that is divided.
  constexpr void pair() {
    if (as_[0].is(division_type::replicated) || as_[1].is(division_type::replicated)) {
      take(0, replicated_value);
      take(1, replicated_value);
    } else if (as_[0].is_divided()) {
      take(1, as_[0]);
    } else if (as_[1].is_divided()) {
      take(0, as_[1]);
    } else {
      has_gathered_ = was_gathered(0) || was_gathered(1);
    }
    y_ = as_[0];
  }
  constexpr void concat() {
    concat_attributes of = was_.attributes.concat();
    if (of.left_is_parameter) return row_before();
    blocks const left = columns(0), right = columns(1);
    operand_shape const shape{was_.rows, was_.columns};
    if (left.count == 1 && right.count == 1 && left.runs + right.runs <= blocks::most) {
      blocks both = left;
      for (int i = 0; i < right.runs; ++i) both.width[both.runs++] = right.width[i];
      y_ = divided_by(both.with_count(was_.rows));
      of.left = left.total_of_part(planes_);
      x_.attributes = of;
    } else if (is_range(rows(0)) && is_range(rows(1))) {
      y_ = by_rows(shape);
    } else {
      by_every_plane();
    }
  }
  /// A row, a parameter, before the rows of each sample.
  constexpr void row_before() {
    concat_attributes of = was_.attributes.concat();
    int const width = of.left;
    if (as_[1].is_divided() && as_[1].of.total() == width &&
        may_divide(was_.in[0], axis::columns)) {
      divide_parameter(was_.in[0], axis::columns, as_[1].of.with_count(1));
      of.left = as_[1].of.total_of_part(planes_);
      x_.attributes = of;
      y_ = divided_by(as_[1].of.with_count(as_[1].of.count + 1));
      return;
    }
    gather(1);
    keep_parameter(was_.in[0], false);
    y_ = whole_value;
  }
  /// By rows, or whole runs of the columns.
  constexpr void slice() {
    slice_attributes of = was_.attributes.slice();
    if (blocks const c = columns(0); c.count == 1) {
      blocks own = c;
      own.runs = 0;
      int first = 0, begin = 0;
      for (int i = 0; i < c.runs; begin += c.width[i++]) {
        if (begin < of.first) first += part_of(c.width[i], planes_);
        if (begin >= of.first && begin + c.width[i] <= of.first + was_.columns)
          own.width[own.runs++] = c.width[i];
      }
      if (own.total() == was_.columns) {
        y_ = divided_by(own.with_count(was_.rows));
        x_.attributes = slice_attributes{c.total_of_part(planes_), first};
        return;
      }
    }
    if (rows(0).exist())
      y_ = divided_by(as_[0].of.scaled(was_.columns, of.columns));
    else
      by_every_plane();
  }

  // ---- along rows and columns ----

  constexpr void by_whole_rows() {
    if (rows(0).exist())
      by_rows_as(as_[0]);
    else
      by_every_plane();
  }
  /// By columns, parameters and buffers likewise. The op of the statistics comes first.
  constexpr void batch_norm() {
    blocks const c = columns(0);
    bool const is_second = was_.kind == op_kind::batch_norm;
    int const first = is_second ? 2 : 1, pair = index_ - is_second;
    bool may = c.exist();
    for (int k = 1; k < op::max_in; ++k) {
      operand const of_sums = g_.ops.items[pair].in[k], of_norm = g_.ops.items[pair + 1].in[k];
      may = may && may_divide(of_sums, axis::columns) &&
            (k == 1 || may_divide(of_norm, axis::columns));
    }
    if (!may) return by_every_plane();
    for (int k = first; k < was_.ins; ++k) divide_parameter(was_.in[k], axis::columns, c);
    y_ = is_second ? as_[0] : divided_by(c.with_count(c.count * was_.rows));
  }
  /// By groups, which are ranges of columns.
  constexpr void group_norm() {
    group_attributes of = was_.attributes.group();
    blocks const c = columns(0);
    bool may = is_range(c) && of.groups % planes_ == 0;
    for (int k = 1; k < was_.ins; ++k) may = may && may_divide(was_.in[k], axis::columns);
    if (!may) return by_every_plane();
    for (int k = 1; k < was_.ins; ++k) divide_parameter(was_.in[k], axis::columns, c);
    of.groups /= planes_;
    x_.attributes = of;
    y_ = as_[0];
  }
  constexpr void gate() {
    int const C = was_.columns;
    if (columns(0) == blocks{1, C, C})
      y_ = divided_by(blocks{was_.rows, C});
    else if (!columns(0).exist() && rows(0).exist())
      y_ = divided_by(as_[0].of.scaled(1, 2));
    else
      by_every_plane();
  }
  /// Pools and resampling of images, by columns.
  constexpr void cells() {
    if (was_gathered(0) && was_.columns % planes_ == 0 && how_ == operand_reading::free)
      take(0, divided_by(blocks{shape_of_operand(was_, 0).rows, was_.columns}));
    if (blocks const c = columns(0); c.exist())
      y_ = divided_by(c.with_count(c.count * was_.rows));
    else
      by_every_plane();
  }
  /// Columns become rows, and rows columns.
  constexpr void transpose() {
    int const read_rows = was_.columns, read_columns = was_.rows;
    if (blocks const c = columns(0); c.count == 1)
      y_ = divided_by(c.scaled(read_rows, 1));
    else if (blocks const r = rows(0); r.count == 1)
      y_ = divided_by(r.with_count(read_columns));
    else
      by_every_plane();
  }
  constexpr void row_dot() {
    int const C = was_.attributes.contraction().inner;
    if (!(as_[0] == as_[1])) gather_all();
    if (blocks const c = columns(0); c.exist() && as_[1].is_divided()) {
      x_.attributes = contraction_attributes{int(c.elements_of_part(planes_))};
      y_ = partial_value;
    } else if (rows(0).exist() && as_[1].is_divided()) {
      y_ = divided_by(as_[0].of.scaled(1, C));
    } else {
      by_every_plane();
    }
  }
  constexpr void row_scale() {
    if (columns(0).exist()) {
      take(1, replicated_value);
      y_ = as_[0];
    } else if (rows(0).exist()) {
      take(1, divided_by(as_[0].of.scaled(1, was_.columns)));
      y_ = as_[0];
    } else {
      by_every_plane();
    }
  }
  constexpr void attention() {
    attention_attributes of = was_.attributes.attention();
    int const q = was_.columns, k = of.kv_heads * (q / of.heads);
    blocks const queries = of.is_fused() ? blocks{1, q, k, k} : blocks{1, q};
    bool may = of.heads % planes_ == 0 && of.kv_heads % planes_ == 0;
    if (may && how_ == operand_reading::free && was_gathered(0))
      take(0, divided_by(queries.with_count(was_.rows)));
    may = may && columns(0) == queries;
    if (!may) return by_every_plane();
    if (!of.is_fused()) take(1, divided_by(blocks{of.keys, k, k}));
    of.heads /= planes_;
    of.kv_heads /= planes_;
    x_.attributes = of;
    y_ = divided_by(blocks{was_.rows, q});
  }

  // ---- losses ----

  /// Divided logits: an op before the loss finds the statistics of each row's own columns, and the
  /// loss reads those of all planes.
  constexpr void cross_entropy() {
    for (int k = 1; k < was_.ins; ++k) gather(k);
    if (!is_range(columns(0)) || was_.in[last_target].where != space::none) {
      rows_of_loss();
      return;
    }
    cross_entropy_attributes of = was_.attributes.cross_entropy();
    of.vocabulary = was_.columns;
    of.part = part_of(was_.columns, planes_);
    constexpr int numbers = 4;
    operand_shape const shape{was_.rows, numbers * planes_};
    value_division const by_plane = divided_by(blocks{shape.rows, shape.columns});
    op sums{op_kind::cross_entropy_statistics, was_.axis};
    sums.unit = was_.unit;
    sums.leaf = was_.leaf;
    sums.ins = 2;
    sums.in[0] = x_.in[0];
    sums.in[1] = x_.in[1];
    sums.rows = shape.rows;
    sums.columns = numbers;
    sums.attributes = of;
    sums.out[0] = new_value(by_plane, long(shape.rows) * numbers);
    push(sums);
    x_.in[last_target] = exchanged(sums.out[0], by_plane, whole_value, shape);
    if (x_.ins <= last_target) x_.ins = last_target + 1;
    x_.attributes = of;
    y_ = as_[0];
  }
  constexpr void rows_of_loss() {
    for (int k = 1; k < was_.ins; ++k) gather(k);
    if (!columns(0).exist() && is_range(rows(0)))
      y_ = as_[0];
    else
      by_every_plane();
  }
  static constexpr int last_target = op::loss_weights - 1;
};

}  // namespace pp::detail
