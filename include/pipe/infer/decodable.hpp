// SPDX-License-Identifier: BSL-1.0
//
// Models that can run position by position: each op computes a row of its result from the same row
// of its operands or, as causal attention does, from that row and the ones before it. All other
// models are refused at compile time where a decoder is named.
#pragma once

#include <type_traits>

#include <pipe/backend/host/row_kernels.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/nn/model.hpp>

namespace pp {

namespace detail {

/// Whether a row of the result of op o depends on no later row of its operands.
/// `context`: the positions of a sample. An op with another number of rows, such as a pool,
/// cannot run by position, but a norm of each head can.
constexpr bool runs_by_position(op const& o, int context) {
  row_rule const rule = row_rule_of(o.kind);
  if (rule == row_rule::concat && o.attributes.concat().left_is_parameter) return false;
  if (o.rows != context && !(rule == row_rule::norm && o.rows % context == 0)) return false;
  if (rule != row_rule::attention) return rule != row_rule::none;
  attention_attributes const of = o.attributes.attention();
  return of.causal && of.scores.prefix == 0;
}

/// The reasons: further inputs, an output that is not scores of the vocabulary, a layer that mixes
/// positions.
enum class decoding_fault : unsigned char { none, input, output, layer };

/// The first reason why model M cannot be decoded.
struct decoding_check {
  decoding_fault what = decoding_fault::none;
  int unit = 0, leaf = -1;  // of the layer, for decoding_fault::layer
};
/// The first fault, in the order of the enumerators but for the output, which is looked at last.
template <class M>
constexpr decoding_check check_decoding() {
  auto const& g = M::graph;
  if (!g.inputs[0].is_ids) return {decoding_fault::input};
  for (int i = 1; i < g.size.inputs; ++i)
    if (!g.inputs[i].of_loss) return {decoding_fault::input};
  int const context = int(g.inputs[0].form.elements());
  // The last op is the loss, which a decoder does not run.
  for (int i = 0; i < g.size.ops - 1; ++i)
    if (op const o = g.ops[i]; !runs_by_position(o, context))
      return {decoding_fault::layer, o.unit, o.leaf};
  if (!M::labels_are_ids || !(g.output == sample_shape(context, g.inputs[0].vocabulary)))
    return {decoding_fault::output};
  return {};
}

/// The diagnosis of a request to decode M. A wrong model is reported elsewhere, not here.
template <class M>
constexpr auto diagnose_decoding(word<M> model) {
  if constexpr (M::valid) {
    constexpr decoding_check c = check_decoding<M>();
    if constexpr (c.what == decoding_fault::input)
      return say<wrong::decoder_needs_token_ids_as_the_only_input>(model);
    else if constexpr (c.what == decoding_fault::output)
      return say<wrong::decoder_needs_scores_of_the_vocabulary_at_every_position>(
          model,
          spell<wrong::Expected, sample_shape(int(M::graph.inputs[0].form.elements()),
                                              M::graph.inputs[0].vocabulary)>(),
          spell<wrong::Found, M::graph.output>());
    else if constexpr (c.what == decoding_fault::layer)
      return say_at<wrong::layer_cannot_run_position_by_position, c.unit>(
          if_set<true>(spell_leaf<c.leaf>(typename M::leaves{})));
    else
      return std::type_identity<nothing_wrong>{};
  } else {
    return std::type_identity<nothing_wrong>{};
  }
}

/// The smallest language model, which stands in after a reported mistake, so that nothing else is
/// reported.
struct smallest_decodable : Model<Tokens<2, 1>, Embedding<2>, CrossEntropy> {};
template <class M>
constexpr bool is_decodable() {
  return check_decoding<M>().what == decoding_fault::none;
}

/// The formulas of model M, on which the kernels of its decoder are instantiated for numbers of
/// type T.
template <class M, class T>
struct row_program {
  using element = T;
  using leaves = typename M::leaves;

  /// The formula of an op; none for a kind without one. That of a softmax has no layer type.
  static constexpr host::row_formula formula_of(op const& o) {
    if (row_rule_of(o.kind) != row_rule::formula) return {};
    return {o.kind, is_by_leaf(o.kind) || has_formula(o.kind) ? o.leaf : -1, o.columns};
  }
  /// Whether any attention has scores that are not plain.
  static constexpr bool shapes_scores = [] {
    bool any = false;
    for (int i = 0; i < M::graph.size.ops; ++i)
      if (M::graph.ops[i].kind == op_kind::attention)
        any = any || !M::graph.ops[i].attributes.attention().scores.is_plain();
    return any;
  }();
  /// The distinct formulas. With unused room: its size would take a constant of its own.
  struct formula_list {
    host::row_formula items[M::graph.size.ops + 1]{};
    int count = 0;
    /// The index of f, or `count` if it is not listed.
    constexpr int find(host::row_formula const& f) const {
      int i = 0;
      while (i < count && !(items[i] == f)) ++i;
      return i;
    }
  };
  /// The formulas of all ops, each once, in the order of the first op that has it.
  static constexpr formula_list distinct = [] {
    formula_list all;
    for (int i = 0; i < M::graph.size.ops; ++i) {
      host::row_formula const f = formula_of(M::graph.ops[i]);
      if (f.kind == op_kind::none) continue;
      int const at = all.find(f);
      all.items[at] = f;
      if (at == all.count) ++all.count;
    }
    return all;
  }();
  static constexpr auto const& formulas = distinct.items;
};

}  // namespace detail

}  // namespace pp
