// SPDX-License-Identifier: BSL-1.0
//
// The shape in which a kind of op reads its operands. A value has no shape of its own: readers of
// one value may see different rows and columns.
#pragma once

#include <pipe/graph/op.hpp>

namespace pp::detail {

/// Rows and columns of an operand, per sample.
struct operand_shape {
  int rows = 0, columns = 0;
  constexpr long elements() const { return long(rows) * columns; }
  friend constexpr bool operator==(operand_shape const&, operand_shape const&) = default;
};

/// The shape of operand k of a forward op, as its kind reads the operand.
///
/// shape: of values and inputs: ids are R rows of `ids` columns, and so are labels of a cross
///        entropy; of parameters see graph/op_kind.hpp
/// needs: k < o.ins; a kind without a case does not compile
constexpr operand_shape shape_of_operand(op const& o, int k) {
  operand_shape const result{o.rows, o.columns};
  switch (o.kind) {
    case op_kind::lookup:
    case op_kind::bag: return {o.rows, o.attributes.lookup().ids};
    case op_kind::matmul:
    case op_kind::row_dot: return {o.rows, o.attributes.contraction().inner};
    case op_kind::convolution: {
      convolution_attributes const of = o.attributes.convolution();
      return {of.in_rows(), of.channels};
    }
    case op_kind::convolution_input_gradient: {
      convolution_attributes const of = o.attributes.convolution();
      return {of.out_rows(), of.filters};
    }
    case op_kind::concat: {
      int const left = o.attributes.concat().left;
      return {o.rows, k == 0 ? left : o.columns - left};
    }
    case op_kind::slice: return {o.rows, o.attributes.slice().columns};
    case op_kind::gate: return {o.rows, 2 * o.columns};
    case op_kind::batch_statistics: return {o.attributes.batch().rows, o.columns};
    case op_kind::batch_norm: return k == 1 ? operand_shape{3, o.columns} : result;
    case op_kind::pool: return {o.attributes.pool().rows, k == 0 ? o.columns : 1};
    case op_kind::resample: {
      resample_attributes const of = o.attributes.resample();
      return {of.axis[0].in * of.axis[1].in, o.columns};
    }
    case op_kind::transpose: return {o.columns, o.rows};
    case op_kind::row_scale: return {o.rows, k == 0 ? o.columns : 1};
    case op_kind::attention: {
      attention_attributes const of = o.attributes.attention();
      int const keys = 2 * (o.columns / of.heads) * of.kv_heads;
      if (k == 1) return {of.keys, keys};
      if (k == 3) return {of.is_fused() ? o.rows : of.keys, 1};
      return {o.rows, o.columns + (of.is_fused() ? keys : 0)};
    }
    case op_kind::cross_entropy: return {o.rows, k == 0 ? o.columns : 1};
    case op_kind::cross_entropy_statistics:
      return {o.rows, k == 0 ? o.attributes.cross_entropy().part : 1};
    case op_kind::custom: {
      sample_shape const form = o.attributes.custom().form;
      return {form.rows(), form.columns()};
    }
    case op_kind::exchange: {
      exchange_attributes const of = o.attributes.exchange();
      return {of.rows, of.columns};
    }
    case op_kind::squared_error:
    case op_kind::element_loss:
    case op_kind::row_loss:
    case op_kind::contrast: return k == op::loss_weights ? operand_shape{o.rows, 1} : result;
    case op_kind::bias:
    case op_kind::row_bias:
    case op_kind::map:
    case op_kind::prelu:
    case op_kind::add:
    case op_kind::multiply:
    case op_kind::dropout:
    case op_kind::norm:
    case op_kind::group_norm:
    case op_kind::response_norm:
    case op_kind::softmax: return result;
    case op_kind::none:  // none and gradients are in no forward graph
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
  op_kind_without::operand_shape(o.kind);
}

}  // namespace pp::detail
