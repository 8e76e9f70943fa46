// SPDX-License-Identifier: BSL-1.0
//
// The kernels of a pipeline as text: the ops fused into each, and its launches per micro-batch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipe/passes/group.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/report/layer_list.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/runtime/description.hpp>

namespace pp {

namespace detail {

/// Name of an op in a kernel: `GELU`, `GELU gradient`, or the op's kind. `leaf`: names of the
/// model's leaf types.
template <class = void>
std::string op_text(pointwise_op const& s, std::vector<std::string_view> const& leaf) {
  if (s.kind == op_kind::map || s.kind == op_kind::prelu)
    return std::string(leaf[std::size_t(s.leaf)]);
  if (s.kind == op_kind::map_gradient || s.kind == op_kind::prelu_gradient)
    return std::string(leaf[std::size_t(s.leaf)]) + " gradient";
  return name_of(s.kind);
}

/// Name of the anchor: the name of its layer type if the layer type has the formula, otherwise the
/// name of its kind.
template <class = void>
std::string anchor_text(group const& g, std::vector<std::string_view> const& leaf) {
  if (!has_formula(g.anchor)) return name_of(g.anchor);
  return std::string(leaf[std::size_t(g.leaf)]) +
         (g.anchor == op_kind::gate_gradient ? " gradient" : "");
}

/// The attribute that distinguishes kernels of a kind, besides their size.
template <class = void>
std::string attribute_text(attributes const& a) {
  switch (a.kind()) {
    case attribute_kind::contraction: return " k" + std::to_string(a.contraction().inner);
    case attribute_kind::attention: return " h" + std::to_string(a.attention().heads);
    case attribute_kind::lookup:
      return " v" + std::to_string(a.lookup().vocabulary) +
             (a.lookup().ids > 1 ? " of " + std::to_string(a.lookup().ids) : "");
    case attribute_kind::concat: return " k" + std::to_string(a.concat().left);
    case attribute_kind::slice: return " k" + std::to_string(a.slice().columns);
    case attribute_kind::convolution: return " k" + std::to_string(a.convolution().inner());
    case attribute_kind::resample:
      return " from " + std::to_string(a.resample().axis[0].in) + " x " +
             std::to_string(a.resample().axis[1].in);
    case attribute_kind::group: return " g" + std::to_string(a.group().groups);
    case attribute_kind::exchange:
      return std::string(" from ") + name_of(a.exchange().from) + " to " + name_of(a.exchange().to);
    case attribute_kind::none:
    case attribute_kind::map:
    case attribute_kind::slope:
    case attribute_kind::norm:
    case attribute_kind::batch:
    case attribute_kind::response:
    case attribute_kind::pool:
    case attribute_kind::cross_entropy:
    case attribute_kind::custom: return "";
  }
  return "";
}

/// The ops of a kernel for one sample, in order: `GELU -> matmul 128 x 96 k384 + bias + add`. The
/// size is the anchor's rows x columns; k is the inner extent of a contraction or a convolution, h
/// the heads of an attention, v the vocabulary of a lookup.
template <class = void>
std::string group_text(group const& g, std::vector<std::string_view> const& leaf) {
  using enum op_kind;
  std::string text;
  for (pointwise_op const& s : g.prologue)
    text += op_text(s, leaf) + (s.kind == bias_gradient ? " and " : " -> ");
  text += anchor_text(g, leaf) + " " + std::to_string(g.rows) + " x " + std::to_string(g.columns) +
          attribute_text(g.attributes);
  for (pointwise_op const& s : g.epilogue) text += " + " + op_text(s, leaf);
  return text;
}

/// The ops of launch number `number`, which is that of a group or of a chain of groups.
template <class Trainer>
std::string kernel_text(int number, std::vector<std::string_view> const& leaf) {
  using compiled = typename Trainer::compiled;
  if (number < compiled::groups) return group_text(compiled::group_at(number), leaf);
  chain_kernel const& chain = compiled::chain_kernels()[number - compiled::groups];
  std::string text = "as one: ";
  for (int i = 0; i < chain.count; ++i)
    text += std::string(i > 0 ? "; " : "") + (i < chain.recomputed ? "recomputed " : "") +
            group_text(compiled::group_at(chain.groups[i]), leaf);
  return text;
}

}  // namespace detail

/// Table of a trainer's distinct kernels, each of which is compiled once. Launches are per
/// micro-batch, over all stages.
template <class Trainer>
std::string explain_kernels() {
  using compiled = typename Trainer::compiled;
  auto const leaf = detail::leaf_names(typename Trainer::model::leaves{});
  int const kernels = compiled::groups + compiled::chain_kernels().count;
  std::vector<int> launches(static_cast<std::size_t>(kernels));
  detail::pipeline_description const d = compiled::description();
  for (int s = 0; s < d.chunks; ++s)
    for (detail::program_view const& p : d.chunk[s].set_for(0).programs)
      for (int i = 0; i < p.count; ++i) ++launches[std::size_t(p.launches[i].group)];
  console::text_table table({"kernel", "pass", "launches", "what"}, {1, 3});
  for (int i = 0; i < kernels; ++i) {
    // A chain is listed under the pass of its first group that is not recomputed.
    auto const first_of = [](detail::chain_kernel const& chain) {
      return chain.groups[chain.recomputed];
    };
    int const g =
        i < compiled::groups ? i : first_of(compiled::chain_kernels()[i - compiled::groups]);
    auto const& first = compiled::passes::numbers.first;
    char const* const pass = g < first[detail::op_list::input_gradients]    ? "forward"
                             : g < first[detail::op_list::weight_gradients] ? "backward, input"
                             : g < first[detail::op_list::recompute]        ? "backward, weight"
                                                                            : "recompute";
    table.add({std::to_string(i), pass, std::to_string(launches[std::size_t(i)]),
               detail::kernel_text<Trainer>(i, leaf)});
  }
  return table.str();
}

}  // namespace pp
