// SPDX-License-Identifier: BSL-1.0
//
// How much workspace a kernel group needs on any instruction set: a constant, so that the memory
// plan is one too.
#pragma once

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/contraction.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/passes/group.hpp>

namespace pp::host {

/// Bytes for a part of a contraction whose result has `rows` rows, of which no part makes more than
/// `most`.
template <class T>
constexpr long most_workspace(extent rows, extent columns, extent inner, int parts) {
  long most = 0;
  for (int part = 0; part < parts; ++part) {
    share const mine = share_of(rows, rows_step, part, parts);
    long const needed =
        mine.size() > 0 ? long(contraction_workspace<T>(mine.size(), columns, inner)) : 0;
    if (needed > most) most = needed;
  }
  return most;
}

/// Bytes for each of `parts` threads, for micro-batches of `samples`.
template <class T>
constexpr long workspace_bytes(group const& g, int samples, int parts = 1) {
  long const rows = long(g.rows) * samples, row = align_up(long(g.columns) * long(sizeof(T)));
  switch (g.anchor) {
    case op_kind::matmul:
    case op_kind::matmul_input_gradient: {
      bool const makes_rows = !g.prologue.empty() && g.prologue.back().store < 0;
      extent const inner = g.attributes.contraction().inner;
      return most_workspace<T>(rows, g.columns, inner, parts) +
             (makes_rows ? align_up(largest_share(rows, rows_step, parts) * inner * long(sizeof(T)))
                         : 0);
    }
    case op_kind::matmul_weight_gradient:
      return most_workspace<T>(g.attributes.contraction().inner, g.columns, rows, parts);
    case op_kind::attention:
    case op_kind::attention_gradient: {
      attention_shape const s = attention_shape_of(g, samples);
      return long(g.anchor == op_kind::attention ? attention_forward_workspace<T>(s)
                                                 : attention_backward_workspace<T>(s));
    }
    case op_kind::none:
    case op_kind::lookup:
    case op_kind::bias:
    case op_kind::row_bias:
    case op_kind::map:
    case op_kind::add:
    case op_kind::dropout:
    case op_kind::concat:
    case op_kind::norm:
    case op_kind::softmax:
    case op_kind::gate:
    case op_kind::pool:
    case op_kind::cross_entropy:
    case op_kind::squared_error:
    case op_kind::element_loss:
    case op_kind::custom:
    case op_kind::map_gradient:
    case op_kind::slice:
    case op_kind::norm_gradient:
    case op_kind::softmax_gradient:
    case op_kind::gate_gradient:
    case op_kind::pool_gradient:
    case op_kind::custom_input_gradient:
    case op_kind::bias_gradient:
    case op_kind::row_bias_gradient:
    case op_kind::norm_parameter_gradient:
    case op_kind::lookup_gradient:
    case op_kind::custom_weight_gradient:
    case op_kind::pointwise: return 2 * row;
  }
  op_kind_without::workspace(g.anchor);
}

}  // namespace pp::host
