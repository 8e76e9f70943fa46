// SPDX-License-Identifier: BSL-1.0
//
// The cost of an op per sample: floating-point operations and bytes moved. The partition balances a
// time that is estimated from these.
#pragma once

#include <pipe/graph/op.hpp>

namespace pp::detail {

/// FLOPs and bytes moved, per sample.
struct cost {
  long flops = 0;
  long bytes = 0;
  constexpr cost& operator+=(cost const& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// The FLOPs of `products` / 2 products of R x S x C elements.
struct attention_work {
  long flops;
  bool is_in_window;  ///< so that S is the window, whatever the length
};
constexpr attention_work work_of_attention(op const& o, int products) {
  attention_attributes const of = o.attributes.attention();
  long const results = long(o.rows) * o.columns,
             all = (of.causal ? products / 2 : products) * results *
                   (of.is_fused() ? o.rows : of.keys),
             inside = products * results * of.scores.window;
  return inside > 0 && inside < all ? attention_work{inside, true} : attention_work{all, false};
}
/// Forward has two products, scores and their product with V: 4 R S C FLOPs, half as many if
/// causal; with a window, S is at most the window. Backward has five. Bytes: queries and results,
/// keys and values.
constexpr cost cost_of_attention(op const& o, int products, int bytes) {
  attention_attributes const of = o.attributes.attention();
  long const results = long(o.rows) * o.columns, keys = of.is_fused() ? o.rows : of.keys,
             key_values = keys * (o.columns / of.heads) * of.kv_heads;
  return {work_of_attention(o, products).flops + 8 * results, bytes * (results + key_values)};
}
/// The FLOPs of an op that grow with the square of a sample's length, where all others grow with
/// the length: of attention to all keys.
constexpr long squared_flops(op const& o) {
  if (o.kind != op_kind::attention && o.kind != op_kind::attention_gradient) return 0;
  attention_work const work = work_of_attention(o, o.kind == op_kind::attention ? 4 : 10);
  return work.is_in_window ? 0 : work.flops;
}

/// The cost of a resampling: an operation for each cell that a result reads; twice that for the
/// gradient of a maximum, which searches for the maximum again. Bytes: x and y once each, since
/// windows that overlap read from the cache.
constexpr cost cost_of_resample(op const& o) {
  resample_attributes const of = o.attributes.resample();
  long const ins = long(of.axis[0].in) * of.axis[1].in,
             outs = long(of.axis[0].out) * of.axis[1].out;
  bool const finds_again =
      o.kind == op_kind::resample_gradient && of.reduction == cell_reduction::largest;
  long const read = of.rule == axis_rule::window ? outs * of.axis[0].size * of.axis[1].size
                                                 : (ins > outs ? ins : outs);
  return {(finds_again ? 2 : 1) * read * o.columns,
          4 * ((finds_again ? 2 : 1) * ins + outs) * o.columns};
}

/// The cost of an op. A multiply-add counts as two FLOPs, an element of a map, a norm or a softmax
/// as eight. Bytes: FP32 operands and results, each read or written once, without parameters, which
/// all samples of a micro-batch share.
constexpr cost cost_of(op const& o) {
  long const results = long(o.rows) * o.columns;
  switch (o.kind) {
    case op_kind::matmul:
    case op_kind::matmul_input_gradient:
    case op_kind::matmul_weight_gradient:
      return {2 * results * o.attributes.contraction().inner,
              4 * (results + long(o.rows) * o.attributes.contraction().inner)};
    case op_kind::convolution:
    case op_kind::convolution_input_gradient:
    case op_kind::convolution_weight_gradient: {
      convolution_attributes const of = o.attributes.convolution();
      long const in = long(of.in_rows()) * of.channels, out = long(of.out_rows()) * of.filters;
      return {2 * out * of.inner(), 4 * (in + out)};
    }
    case op_kind::attention: return cost_of_attention(o, 4, 8);
    case op_kind::attention_gradient: return cost_of_attention(o, 10, 16);
    case op_kind::lookup:
    case op_kind::lookup_gradient:
    case op_kind::bias:
    case op_kind::row_bias:
    case op_kind::bias_gradient:
    case op_kind::row_bias_gradient: return {results, 8 * results};
    case op_kind::bag:
    case op_kind::bag_gradient: {
      long const rows = o.attributes.lookup().ids;
      return {rows * results, 4 * (rows + 1) * results};
    }
    case op_kind::prelu:
    case op_kind::prelu_parameter_gradient: return {2 * results, 8 * results};
    case op_kind::prelu_gradient: return {2 * results, 12 * results};
    case op_kind::add:
    case op_kind::multiply: return {results, 12 * results};
    case op_kind::row_dot: {
      long const read = results * o.attributes.contraction().inner;
      return {2 * read, 4 * (2 * read + results)};
    }
    case op_kind::row_scale: return {results, 8 * results};
    case op_kind::concat:
    case op_kind::slice:
    case op_kind::transpose: return {0, 8 * results};
    case op_kind::pool: {
      long const rows = o.attributes.pool().rows;
      return {rows * o.columns, 4 * (rows + 1) * o.columns};
    }
    case op_kind::batch_statistics:
    case op_kind::batch_sums: {  // one result for all samples: almost no bytes for each
      long const read = long(o.attributes.batch().rows) * o.columns;
      return {4 * read, 8 * read};
    }
    case op_kind::batch_parameter_gradient:
    case op_kind::batch_running_sums: return {results, 8 * results};
    case op_kind::pool_gradient: return {results, 4 * (results + o.columns)};
    case op_kind::resample:
    case op_kind::resample_gradient: return cost_of_resample(o);
    case op_kind::exchange: {
      exchange_attributes const of = o.attributes.exchange();
      return {0, 4 * (results + long(of.rows) * of.columns)};
    }
    case op_kind::cross_entropy_statistics: {
      long const read = long(o.rows) * o.attributes.cross_entropy().part;
      return {8 * read, 4 * (read + results)};
    }
    case op_kind::custom:
      return {o.attributes.custom().flops, 4 * (results + o.attributes.custom().form.elements())};
    case op_kind::custom_input_gradient:
    case op_kind::custom_weight_gradient: return {o.attributes.custom().flops, 8 * results};
    case op_kind::custom_statistics: {
      long const read = o.attributes.custom().form.elements();
      return {read, 4 * read};
    }
    case op_kind::none:
    case op_kind::map:
    case op_kind::dropout:
    case op_kind::norm:
    case op_kind::batch_norm:
    case op_kind::group_norm:
    case op_kind::response_norm:
    case op_kind::softmax:
    case op_kind::gate:
    case op_kind::cross_entropy:
    case op_kind::squared_error:
    case op_kind::element_loss:
    case op_kind::row_loss:
    case op_kind::contrast:
    case op_kind::map_gradient:
    case op_kind::norm_gradient:
    case op_kind::batch_norm_gradient:
    case op_kind::group_norm_gradient:
    case op_kind::response_norm_gradient:
    case op_kind::softmax_gradient:
    case op_kind::gate_gradient:
    case op_kind::norm_parameter_gradient:
    case op_kind::group_parameter_gradient:
    case op_kind::pointwise: return {8 * results, 12 * results};
  }
  op_kind_without::cost(o.kind);
}

/// FLOPs of a host core in the time in which it moves one byte through its outer caches (247 GF/s
/// against about 30 GB/s).
inline constexpr long flops_per_byte = 8;

/// Estimated time in units of one FLOP at full speed.
constexpr long estimated_time(cost const& c) { return c.flops + flops_per_byte * c.bytes; }

}  // namespace pp::detail
