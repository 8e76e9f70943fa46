// SPDX-License-Identifier: BSL-1.0
//
// The gradients of a graph as a constant: counted first, then stored in memory of that size.
#pragma once

#include <pipe/graph/differentiate.hpp>

namespace pp::detail {

/// Working memory of differentiation, for a graph of size Forward.
template <graph_size Forward>
struct gradient_scratch_of {
  bool needed[Forward.values + 1]{};
  operand gradient[Forward.values + 1]{}, remade[Forward.values + 1]{};
  bool inputs = false;
  constexpr operator gradient_scratch() {
    return gradient_scratch{needed, gradient, remade, inputs};
  }
};
/// The sizes of a graph's gradients. inputs: whether inputs get gradients too
template <graph_size Forward>
constexpr gradient_size count_gradients(graph<Forward> const& g, bool inputs = false) {
  gradient_scratch_of<Forward> scratch;
  scratch.inputs = inputs;
  gradient_sinks counts;
  differentiate(g, scratch, counts);
  return counts.sizes();
}
/// The gradients of a graph. needs: Size is count_gradients(g, inputs)
template <gradient_size Size, graph_size Forward>
constexpr gradient_graph<Size, Forward.parameters> differentiate(graph<Forward> const& g,
                                                                 bool inputs = false) {
  gradient_scratch_of<Forward> scratch;
  scratch.inputs = inputs;
  gradient_graph<Size, Forward.parameters> out;
  out.inputs = inputs ? Forward.inputs : 0;
  gradient_sinks sinks = out.sinks();
  differentiate(g, scratch, sinks);
  return out;
}

}  // namespace pp::detail
