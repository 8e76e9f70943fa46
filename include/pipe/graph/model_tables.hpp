// SPDX-License-Identifier: BSL-1.0
//
// A model's graph without its ops and values: the model's inputs, parameters, units and output.
// Programs read these tables at run time; the graph itself is used during compilation only, so that
// no program contains it. EDG front ends (nvcc has one) copy a constant for each constant
// expression that names it, so expressions that can name these tables do not name the graph.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/further_loss.hpp>
#include <pipe/graph/graph.hpp>
#include <pipe/graph/loss_labels.hpp>

namespace pp::detail {

/// The tables of model M.
template <class M>
struct model_tables {
  using graph = typename M::graph_type;

  /// By parameter, in model order.
  static constexpr auto parameters = [](auto...) {
    list<parameter, graph::size.parameters> all;
    for (int i = 0; i < all.size(); ++i) all[i] = M::graph.parameters[i];
    return all;
  }();
  /// By unit, with the end marker.
  static constexpr auto units = [](auto...) {
    list<unit_record, graph::size.units + 1> all;
    for (int i = 0; i < all.size(); ++i) all[i] = M::graph.units[i];
    return all;
  }();
  /// By input, inputs of the loss included.
  static constexpr auto inputs = [](auto...) {
    list<input_record, graph::size.inputs> all;
    for (int i = 0; i < all.size(); ++i) all[i] = M::graph.inputs[i];
    return all;
  }();
  /// The shape of the output of one sample.
  static constexpr sample_shape output = M::graph.output;
  /// By loss: the result of its chain, of which the first is the output.
  static constexpr auto loss_inputs = [](auto...) {
    list<loss_input, losses_in<typename M::loss>> all;
    if constexpr (graph::size.ops > 0) all[0] = input_of_loss(M::graph.loss());
    if constexpr (all.size() > 1) list_further_inputs(graph_view(M::graph).ops, all.items + 1);
    return all;
  }();
  /// Labels of a sample, of the first loss.
  static constexpr long labels =
      long(output.rows()) * labels_of_row<typename M::loss>(output.columns());

  /// The graph with empty lists of ops and values.
  static constexpr graph_view outline{{},
                                      {},
                                      {parameters.items, graph::size.parameters},
                                      {units.items, graph::size.units},
                                      {inputs.items, graph::size.inputs},
                                      output};
};

}  // namespace pp::detail
