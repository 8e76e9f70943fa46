// SPDX-License-Identifier: BSL-1.0
//
// The kernels of a pipeline as text: which ops were fused into each, and how often a micro-batch
// launches it.
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

/// `GELU`, `GELU gradient`, or the op's own name. `leaf` holds the names of the model's leaf types.
inline std::string step_text(step const& s, std::vector<std::string_view> const& leaf) {
  if (s.kind == op_kind::map) return std::string(leaf[std::size_t(s.leaf)]);
  if (s.kind == op_kind::map_gradient) return std::string(leaf[std::size_t(s.leaf)]) + " gradient";
  return name_of(s.kind);
}

inline std::string anchor_text(group const& g, std::vector<std::string_view> const& leaf) {
  if (!has_formula(g.anchor)) return name_of(g.anchor);
  return std::string(leaf[std::size_t(g.leaf)]) +
         (g.anchor == op_kind::gate_gradient ? " gradient" : "");
}

/// What tells most kernels of a kind apart beside their size.
inline std::string attribute_text(attributes const& a) {
  switch (a.kind()) {
    case attribute_kind::contraction: return " k" + std::to_string(a.contraction().inner);
    case attribute_kind::attention: return " h" + std::to_string(a.attention().heads);
    case attribute_kind::lookup: return " v" + std::to_string(a.lookup().vocabulary);
    case attribute_kind::concat: return " k" + std::to_string(a.concat().left);
    case attribute_kind::slice: return " k" + std::to_string(a.slice().columns);
    case attribute_kind::none:
    case attribute_kind::map:
    case attribute_kind::norm:
    case attribute_kind::pool:
    case attribute_kind::cross_entropy:
    case attribute_kind::custom: return "";
  }
  return "";
}

/// What a kernel computes for one sample, in order: `GELU -> matmul 128 x 96 k384 + bias + add`.
/// The size is the anchor's rows x columns; k is the inner width of a contraction, h the heads of
/// an attention, v the vocabulary of a lookup.
inline std::string group_text(group const& g, std::vector<std::string_view> const& leaf) {
  using enum op_kind;
  std::string text;
  for (step const& s : g.prologue)
    text += step_text(s, leaf) + (s.kind == bias_gradient ? " and " : " -> ");
  text += anchor_text(g, leaf) + " " + std::to_string(g.rows) + " x " + std::to_string(g.columns) +
          attribute_text(g.attributes);
  for (step const& s : g.epilogue) text += " + " + step_text(s, leaf);
  return text;
}

/// The distinct kernels of a trainer: each is compiled once. Launches are those of one micro-batch,
/// over all stages.
template <class Trainer>
std::string explain_kernels() {
  using compiled = typename Trainer::compiled;
  auto const leaf = leaf_names(typename Trainer::model::leaves{});
  std::vector<int> launches(static_cast<std::size_t>(compiled::groups));
  for (int s = 0; s < compiled::stages; ++s)
    for (program_view const& p : compiled::memory().chunks[s].set_for(0).programs)
      for (int i = 0; i < p.count; ++i) ++launches[std::size_t(p.launches[i].group)];
  text_table table({"kernel", "pass", "launches", "what"}, {1, 3});
  for (int g = 0; g < compiled::groups; ++g) {
    auto const& first = compiled::passes::numbers.first;
    char const* const pass = g < first[op_list::input_gradients]    ? "forward"
                             : g < first[op_list::weight_gradients] ? "backward, input"
                             : g < first[op_list::again]            ? "backward, weight"
                                                                    : "recompute";
    table.add({std::to_string(g), pass, std::to_string(launches[std::size_t(g)]),
               group_text(compiled::group_at(g), leaf)});
  }
  return table.str();
}

}  // namespace pp
