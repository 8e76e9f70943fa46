// SPDX-License-Identifier: BSL-1.0
//
// How much workspace a kernel group needs on any instruction set: a constant, so that the memory plan is one too.
#pragma once

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/contraction.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/passes/group.hpp>

namespace pp::host {

/// Bytes, for micro-batches of `samples`.
template <class T>
constexpr long workspace_bytes(group const& g, int samples) {
  long const rows = long(g.rows) * samples, row = align_up(long(g.columns) * long(sizeof(T)));
  switch (g.anchor) {
    case op_kind::matmul:
    case op_kind::matmul_input_gradient: {
      bool const makes_rows = !g.prologue.empty() && g.prologue.back().store < 0;
      return long(contraction_workspace<T>(rows, g.columns, g.inner)) +
             (makes_rows ? align_up(rows * g.inner * long(sizeof(T))) : 0);
    }
    case op_kind::matmul_weight_gradient: return long(contraction_workspace<T>(g.inner, g.columns, rows));
    case op_kind::attention:
    case op_kind::attention_gradient: {
      attention_shape const s = attention_shape_of(g, samples);
      return long(g.anchor == op_kind::attention ? attention_forward_workspace<T>(s)
                                                 : attention_backward_workspace<T>(s));
    }
    default: return 2 * row;
  }
}

}  // namespace pp::host
