// SPDX-License-Identifier: BSL-1.0
//
// The graph of one of several planes: its exchanges are those of Megatron's tensor and sequence
// parallelism, its sizes are parts, and copies of a Repeat are alike.
#include "catch.hpp"

#include <string>

#include <pipe/graph/gradient_graph.hpp>
#include <pipe/passes/heap_compilation.hpp>
#include <pipe/passes/heap_division.hpp>
#include <pipe/pipe.hpp>

using namespace pp;
using detail::division_type;
using detail::op;
using detail::operand;
using detail::space;

namespace {

using Block = Seq<Residual<LayerNorm, Attention<6>, Dropout<1, 10>>,
                  Residual<LayerNorm, Linear<96>, GELU, Linear<24>>>;
template <int Copies>
struct GPT : Model<Tokens<50, 8>, Named<"wte", Embedding<24>>, Positions, Repeat<Copies, Block>,
                   LayerNorm, Tied<"wte">, CrossEntropy> {};

template <class M, int Planes>
inline constexpr auto divided =
    detail::divide<detail::count_division(M::graph, Planes)>(M::graph, Planes);

bool same(op const& a, op const& b) {
  bool is_same = a.kind == b.kind && a.unit == b.unit && a.leaf == b.leaf && a.axis == b.axis &&
                 a.ins == b.ins && a.rows == b.rows && a.columns == b.columns &&
                 a.origin == b.origin && a.attributes == b.attributes;
  for (int k = 0; k < op::max_in; ++k) is_same = is_same && a.in[k] == b.in[k];
  for (int k = 0; k < op::max_out; ++k) is_same = is_same && a.out[k] == b.out[k];
  return is_same;
}

/// A division as "whole", "replicated", "rows" or the widths of the runs of a row.
std::string text(detail::value_division const& d) {
  if (!d.is_divided()) return detail::name_of(d.where);
  if (d.of.count == 1) return "rows";
  std::string s = "columns";
  for (int i = 0; i < d.of.runs; ++i) s += (i == 0 ? " " : "|") + std::to_string(d.of.width[i]);
  return s;
}
std::string text(detail::parameter_division const& d) {
  using axis = detail::parameter_division::axis;
  if (!d.is_divided()) return d.has_partial_gradient ? "replicated" : "whole";
  std::string s = d.along == axis::rows ? "rows" : "columns";
  for (int i = 0; i < d.of.runs; ++i) s += (i == 0 ? " " : "|") + std::to_string(d.of.width[i]);
  return s;
}
/// The ops of units [first, end), a line for each: its kind, its parameters, its result.
std::string lines(detail::division_view const& d, int first, int end) {
  std::string s;
  for (op const& o : d.local.ops) {
    if (o.unit < first || o.unit >= end) continue;
    s += detail::name_of(o.kind);
    for (int k = 0; k < o.ins; ++k)
      if (detail::is_parameter(o.in[k])) s += ", " + text(d.parameters[o.in[k].index]);
    s += " -> " + text(d.values[o.out[0].index]) + "\n";
  }
  return s;
}

/// Every value has as many numbers as its part, and every op as many rows and columns.
void has_sizes_of_parts(detail::division_view const& d) {
  for (int v = 0; v < d.values.count; ++v)
    if (d.values[v].is_divided())
      CHECK(d.local.values[v].elements == d.values[v].of.elements_of_part(d.planes));
  for (op const& o : d.local.ops) {
    CHECK(d.local.values[o.out[0].index].elements == long(o.rows) * o.columns);
    if (o.in[0].where == space::value)
      CHECK(d.local.values[o.in[0].index].elements == detail::shape_of_operand(o, 0).elements());
  }
}

}  // namespace

TEST_CASE("on one plane the graph comes back", "[division]") {
  detail::graph_view const whole = GPT<5>::graph, one = divided<GPT<5>, 1>.local;
  REQUIRE(one.ops.count == whole.ops.count);
  for (int i = 0; i < whole.ops.count; ++i) CHECK(same(whole.ops[i], one.ops[i]));
  REQUIRE(one.values.count == whole.values.count);
  for (int v = 0; v < whole.values.count; ++v)
    CHECK(one.values[v].elements == whole.values[v].elements);
  for (int p = 0; p < whole.parameters.count; ++p)
    CHECK(one.parameters[p].form == whole.parameters[p].form);
  for (int u = 0; u <= whole.units.count; ++u) CHECK(one.units[u].result == whole.units[u].result);
}

TEST_CASE("a GPT is divided as Megatron divides it", "[division]") {
  detail::division_view const d = divided<GPT<1>, 2>;
  CHECK(lines(d, 0, d.local.units.count) == R"(lookup, rows 50 -> partial
exchange -> rows
row_bias, rows 8 -> rows
norm, replicated, replicated -> rows
exchange -> replicated
matmul, columns 24|24|24 -> columns 24|24|24
bias, columns 24|24|24 -> columns 24|24|24
attention -> columns 24
matmul, rows 24 -> partial
exchange -> rows
bias, replicated -> rows
dropout -> rows
add -> rows
norm, replicated, replicated -> rows
exchange -> replicated
matmul, columns 96 -> columns 96
bias, columns 96 -> columns 96
map -> columns 96
matmul, rows 96 -> partial
exchange -> rows
bias, replicated -> rows
add -> rows
norm, replicated, replicated -> rows
exchange -> replicated
matmul, rows 50 -> columns 50
cross_entropy_statistics -> columns 8
exchange -> whole
cross_entropy -> columns 50
)");
  has_sizes_of_parts(d);
}
