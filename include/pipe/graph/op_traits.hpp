// SPDX-License-Identifier: BSL-1.0
//
// The properties of each kind of op: one row per kind, read by every pass and by both backends.
// Rules that need code (gradient, cost, workspace, kernels) are switches without a default
// elsewhere.
#pragma once

#include <pipe/graph/attributes.hpp>
#include <pipe/graph/op_kind.hpp>

namespace pp {

namespace detail {

/// The rule by which a decoder computes a row of the result: from the same row of the operands or,
/// for attention, also from earlier rows. A kind that mixes rows in another way has no rule, and a
/// model with such an op has no decoder.
///
/// x: the row of in[0]; z: the row of in[1]; p: in[1], a parameter
enum class row_rule : unsigned char {
  none,
  lookup,         // y = p[token]
  product,        // y = x p, or x p'
  add_parameter,  // y = x + p
  add_position,   // y = x + p[position]
  add,            // y = x + z
  multiply,       // y = x z
  copy,           // y = x
  concat,         // y = x, z
  dot,            // y = the sum of x z
  scale,          // y = x z, z one number
  slope,          // y = x above 0, else p x
  formula,        // y = f(x), a function of the kind and, if it has a formula, of the layer type
  norm,           // y = (x - mean) / deviation * gamma + beta
  attention,      // if causal: to keys and values of this row and of earlier rows
};

/// The properties of a kind: one row of the table.
struct op_traits {
  char const* name = nullptr;
  attribute_kind attributes = attribute_kind::none;
  /// law: out[i] depends on element i of the operands (and on one row or column of a parameter), so
  ///      a pointwise op can be computed wherever its main operand, in[0], has just been computed.
  bool pointwise = false;
  bool by_leaf = false;      // pointwise, with a formula or numbers from its layer type
  bool formula = false;      // not pointwise, with a formula from its layer type
  bool loss = false;         // a loss; its result is the gradient of the loss
  bool contraction = false;  // a matrix product, where most of the work is
  bool attention = false;
  bool prologue = false;  // as an anchor, may read through a chain of pointwise ops
  bool epilogue = false;  // as an anchor, passes finished rows through a chain
  /// The last operation on a result is a product, which a following sum must not contract into a
  /// fused multiply-add: the bits would depend on fusion.
  bool ends_in_product = false;
  bool statistics = false;  // out[1] holds statistics of rows, in the type of parameters
  /// out[0] has numbers for each group of samples (see batch_attributes), not for each sample, in
  /// the type of parameters.
  bool of_batch = false;
  bool of_planes = false;  // only in graphs of one plane: no kernel yet
  row_rule by_row = row_rule::none;
};

/// The row of a kind. Passes read the bit masks below instead, which are cheaper to evaluate.
constexpr op_traits traits_of(op_kind k) {
  switch (k) {
    case op_kind::none: return {.name = "none"};
    case op_kind::lookup:
      return {.name = "lookup",
              .attributes = attribute_kind::lookup,
              .epilogue = true,
              .by_row = row_rule::lookup};
    case op_kind::bag:
      return {.name = "bag", .attributes = attribute_kind::lookup, .epilogue = true};
    case op_kind::matmul:
      return {.name = "matmul",
              .attributes = attribute_kind::contraction,
              .contraction = true,
              .prologue = true,
              .epilogue = true,
              .by_row = row_rule::product};
    case op_kind::convolution:
      return {.name = "convolution", .attributes = attribute_kind::convolution, .epilogue = true};
    case op_kind::bias:
      return {.name = "bias", .pointwise = true, .by_row = row_rule::add_parameter};
    case op_kind::row_bias:
      return {.name = "row_bias", .pointwise = true, .by_row = row_rule::add_position};
    case op_kind::map:
      return {.name = "map",
              .attributes = attribute_kind::map,
              .pointwise = true,
              .by_leaf = true,
              .by_row = row_rule::formula};
    case op_kind::prelu:
      return {.name = "prelu",
              .attributes = attribute_kind::slope,
              .pointwise = true,
              .by_leaf = true,
              .ends_in_product = true,
              .by_row = row_rule::slope};
    case op_kind::add: return {.name = "add", .pointwise = true, .by_row = row_rule::add};
    case op_kind::multiply:
      return {.name = "multiply",
              .pointwise = true,
              .ends_in_product = true,
              .by_row = row_rule::multiply};
    case op_kind::dropout:
      return {.name = "dropout", .pointwise = true, .by_leaf = true, .by_row = row_rule::copy};
    case op_kind::concat:
      return {.name = "concat", .attributes = attribute_kind::concat, .by_row = row_rule::concat};
    case op_kind::norm:
      return {.name = "norm",
              .attributes = attribute_kind::norm,
              .prologue = true,
              .epilogue = true,
              .ends_in_product = true,
              .statistics = true,
              .by_row = row_rule::norm};
    case op_kind::batch_statistics:
      return {.name = "batch_statistics", .attributes = attribute_kind::batch, .of_batch = true};
    case op_kind::batch_norm:
      return {.name = "batch_norm",
              .attributes = attribute_kind::batch,
              .epilogue = true,
              .ends_in_product = true};
    case op_kind::group_norm:
      return {.name = "group_norm",
              .attributes = attribute_kind::group,
              .epilogue = true,
              .ends_in_product = true,
              .statistics = true};
    case op_kind::response_norm:
      return {.name = "response_norm",
              .attributes = attribute_kind::response,
              .epilogue = true,
              .ends_in_product = true};
    case op_kind::softmax:
      return {.name = "softmax",
              .prologue = true,
              .epilogue = true,
              .ends_in_product = true,
              .by_row = row_rule::formula};
    case op_kind::gate:
      return {.name = "gate",
              .formula = true,
              .epilogue = true,
              .ends_in_product = true,
              .by_row = row_rule::formula};
    case op_kind::pool: return {.name = "pool", .attributes = attribute_kind::pool};
    case op_kind::resample: return {.name = "resample", .attributes = attribute_kind::resample};
    case op_kind::transpose: return {.name = "transpose"};
    case op_kind::row_dot:
      return {.name = "row_dot",
              .attributes = attribute_kind::contraction,
              .epilogue = true,
              .ends_in_product = true,
              .by_row = row_rule::dot};
    case op_kind::row_scale:
      return {.name = "row_scale",
              .epilogue = true,
              .ends_in_product = true,
              .by_row = row_rule::scale};
    case op_kind::attention:
      return {.name = "attention",
              .attributes = attribute_kind::attention,
              .attention = true,
              .statistics = true,
              .by_row = row_rule::attention};
    case op_kind::cross_entropy:
      return {.name = "cross_entropy", .attributes = attribute_kind::cross_entropy, .loss = true};
    case op_kind::squared_error: return {.name = "squared_error", .loss = true};
    case op_kind::element_loss: return {.name = "element_loss", .formula = true, .loss = true};
    case op_kind::row_loss: return {.name = "row_loss", .formula = true, .loss = true};
    case op_kind::contrast: return {.name = "contrast", .formula = true, .loss = true};
    case op_kind::custom:
      return {.name = "custom", .attributes = attribute_kind::custom, .formula = true};
    case op_kind::exchange:
      return {.name = "exchange", .attributes = attribute_kind::exchange, .of_planes = true};
    case op_kind::cross_entropy_statistics:
      return {.name = "cross_entropy_statistics",
              .attributes = attribute_kind::cross_entropy,
              .of_planes = true};
    case op_kind::matmul_input_gradient:
      return {.name = "matmul_input_gradient",
              .attributes = attribute_kind::contraction,
              .contraction = true,
              .epilogue = true};
    case op_kind::convolution_input_gradient:
      return {.name = "convolution_input_gradient",
              .attributes = attribute_kind::convolution,
              .epilogue = true};
    case op_kind::map_gradient: return {.name = "map_gradient", .pointwise = true, .by_leaf = true};
    case op_kind::prelu_gradient:
      return {.name = "prelu_gradient",
              .attributes = attribute_kind::slope,
              .pointwise = true,
              .by_leaf = true,
              .ends_in_product = true};
    case op_kind::slice: return {.name = "slice", .attributes = attribute_kind::slice};
    case op_kind::norm_gradient:
      return {.name = "norm_gradient",
              .attributes = attribute_kind::norm,
              .epilogue = true,
              .ends_in_product = true};
    case op_kind::batch_sums:
      return {.name = "batch_sums", .attributes = attribute_kind::batch, .of_batch = true};
    case op_kind::batch_norm_gradient:
      return {.name = "batch_norm_gradient",
              .attributes = attribute_kind::batch,
              .epilogue = true,
              .ends_in_product = true};
    case op_kind::group_norm_gradient:
      return {.name = "group_norm_gradient",
              .attributes = attribute_kind::group,
              .epilogue = true,
              .ends_in_product = true};
    case op_kind::response_norm_gradient:
      return {.name = "response_norm_gradient",
              .attributes = attribute_kind::response,
              .epilogue = true,
              .ends_in_product = true};
    case op_kind::softmax_gradient:
      return {.name = "softmax_gradient", .epilogue = true, .ends_in_product = true};
    case op_kind::gate_gradient:
      return {.name = "gate_gradient", .formula = true, .epilogue = true, .ends_in_product = true};
    case op_kind::pool_gradient:
      return {.name = "pool_gradient", .attributes = attribute_kind::pool};
    case op_kind::resample_gradient:
      return {.name = "resample_gradient", .attributes = attribute_kind::resample};
    case op_kind::attention_gradient:
      return {
          .name = "attention_gradient", .attributes = attribute_kind::attention, .attention = true};
    case op_kind::custom_input_gradient:
      return {
          .name = "custom_input_gradient", .attributes = attribute_kind::custom, .formula = true};
    case op_kind::matmul_weight_gradient:
      return {.name = "matmul_weight_gradient",
              .attributes = attribute_kind::contraction,
              .contraction = true};
    case op_kind::convolution_weight_gradient:
      return {.name = "convolution_weight_gradient", .attributes = attribute_kind::convolution};
    case op_kind::bias_gradient: return {.name = "bias_gradient"};
    case op_kind::row_bias_gradient: return {.name = "row_bias_gradient"};
    case op_kind::prelu_parameter_gradient:
      return {.name = "prelu_parameter_gradient", .attributes = attribute_kind::slope};
    case op_kind::norm_parameter_gradient: return {.name = "norm_parameter_gradient"};
    case op_kind::batch_parameter_gradient:
      return {.name = "batch_parameter_gradient", .attributes = attribute_kind::batch};
    case op_kind::batch_running_sums:
      return {.name = "batch_running_sums", .attributes = attribute_kind::batch};
    case op_kind::group_parameter_gradient:
      return {.name = "group_parameter_gradient", .attributes = attribute_kind::group};
    case op_kind::lookup_gradient:
      return {.name = "lookup_gradient", .attributes = attribute_kind::lookup};
    case op_kind::bag_gradient:
      return {.name = "bag_gradient", .attributes = attribute_kind::lookup};
    case op_kind::custom_weight_gradient:
      return {
          .name = "custom_weight_gradient", .attributes = attribute_kind::custom, .formula = true};
    case op_kind::custom_statistics:
      return {.name = "custom_statistics", .attributes = attribute_kind::custom, .formula = true};
    case op_kind::pointwise: return {.name = "pointwise"};
  }
  op_kind_without::traits(k);
}

/// All rows, indexed by kind.
struct op_traits_table {
  op_traits rows[op_kinds]{};
  constexpr op_traits_table() {
    for (int k = 0; k < op_kinds; ++k) rows[k] = traits_of(op_kind(k));
  }
  /// The kinds with a property as a bit mask.
  constexpr kind_mask kinds_with(bool op_traits::* property) const {
    kind_mask mask = 0;
    for (int k = 0; k < op_kinds; ++k) mask |= kind_mask(rows[k].*property) << k;
    return mask;
  }
};
inline constexpr op_traits_table op_traits_rows{};

/// The kinds with a property. Passes query every op, so a query is one shift of a bit mask.
template <bool op_traits::* Property>
inline constexpr kind_mask kinds_with = op_traits_rows.kinds_with(Property);
/// Whether kind k has a property.
template <bool op_traits::* Property>
constexpr bool has(op_kind k) {
  return kinds_with<Property> >> int(k) & 1;
}

/// The name of a kind, for plans and messages.
constexpr char const* name_of(op_kind k) { return op_traits_rows.rows[int(k)].name; }

/// The kind of attributes that ops of kind k have.
constexpr attribute_kind attributes_of(op_kind k) { return op_traits_rows.rows[int(k)].attributes; }
/// The rule by which a decoder computes one row of the result.
constexpr row_rule row_rule_of(op_kind k) { return op_traits_rows.rows[int(k)].by_row; }
constexpr bool is_pointwise(op_kind k) { return kinds_with<&op_traits::pointwise> >> int(k) & 1; }
/// Whether a pointwise op has a third operand, a parameter, behind its second one.
constexpr bool has_third(op_kind k) { return k == op_kind::prelu_gradient; }
/// Whether the op is pointwise and takes a formula or numbers from its layer type.
constexpr bool is_by_leaf(op_kind k) { return kinds_with<&op_traits::by_leaf> >> int(k) & 1; }
/// Whether the op is not pointwise and takes a formula from its layer type.
constexpr bool has_formula(op_kind k) { return kinds_with<&op_traits::formula> >> int(k) & 1; }
constexpr bool is_loss(op_kind k) { return kinds_with<&op_traits::loss> >> int(k) & 1; }
/// Whether ops of this kind are in graphs of one plane alone.
constexpr bool is_of_planes(op_kind k) { return kinds_with<&op_traits::of_planes> >> int(k) & 1; }
/// Whether ops of this kind are matrix products, with contraction_attributes.
constexpr bool is_contraction(op_kind k) {
  return kinds_with<&op_traits::contraction> >> int(k) & 1;
}
constexpr bool is_attention(op_kind k) { return kinds_with<&op_traits::attention> >> int(k) & 1; }
/// Whether the kernel of this kind can read its operand through a chain of pointwise ops.
constexpr bool takes_prologue(op_kind k) { return kinds_with<&op_traits::prologue> >> int(k) & 1; }
/// Whether the kernel of this kind can run pointwise ops on its result before the result is stored.
constexpr bool takes_epilogue(op_kind k) {
  return (kinds_with<&op_traits::epilogue> | kinds_with<&op_traits::pointwise>) >> int(k) & 1;
}

}  // namespace detail

}  // namespace pp
