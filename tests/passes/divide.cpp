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

TEST_CASE("heads that planes do not divide leave the attention whole", "[division]") {
  detail::division_view const d = divided<GPT<1>, 4>;  // 6 heads
  std::string const all = lines(d, 0, d.local.units.count);
  CHECK(all.find(R"(matmul, columns 72 -> columns 72
bias, columns 72 -> columns 72
exchange -> whole
attention -> whole
exchange -> columns 24
matmul, rows 24 -> partial
exchange -> rows
)") != std::string::npos);
  has_sizes_of_parts(d);
}

TEST_CASE("a vocabulary that planes do not divide is padded", "[division]") {
  detail::division_view const d = divided<GPT<1>, 4>;  // 50 tokens
  op const& loss = d.local.loss();
  CHECK(loss.columns == 13);
  CHECK(loss.attributes.cross_entropy().vocabulary == 50);
  CHECK(loss.attributes.cross_entropy().part == 13);
  detail::parameter_division const table = d.parameters[0];
  CHECK(table.padding(4) == 2);
  CHECK(d.local.parameters[0].form == sample_shape(13, 24));
  CHECK(table.place_of(24 * 12 + 5, 24, 2, 4) == 24 * 38 + 5);
  CHECK(table.place_of(24 * 12, 24, 3, 4) == -1);
  // The head reads the same rows of the same table.
  int tied = 0;
  for (int p = 1; p < d.parameters.count; ++p)
    if (d.local.parameters[p].tied_to == 0) {
      ++tied;
      CHECK(d.parameters[p] == table);
    }
  CHECK(tied == 1);
}

namespace {

struct Grouped
    : Model<Input<9, 9, 3>, Conv2d<16, 3>, ReLU, Conv2d<32, 3, Padding<1>, Groups<2>>,
            LocalResponseNorm<5>, MaxPool2d<2>, FlattenChannelsFirst, Linear<10>, CrossEntropy> {};
struct Adapted : Model<Tokens<32, 8>, Embedding<16>,
                       LoRA<Residual<LayerNorm, Linear<32>, GELU, Linear<16>>, 3, Alpha<6>>,
                       Linear<32>, CrossEntropy> {};
struct Flat
    : Model<Input<4, 4, 3>, Conv2d<8, 3, Padding<1>>, Flatten, Dropout<1, 2>, Linear<3>, MSE> {};
/// Copies that a walk would divide in turn by columns and by rows.
struct Deep : Model<Input<16>, Repeat<5, Linear<16>, ReLU>, Linear<3>, MSE> {};
struct Shared : Model<Input<16>, Named<"w", Linear<16>>, ReLU, Tied<"w">, Linear<4>, MSE> {};

struct Torn : Model<Input<16>, Named<"w", Linear<32>>, SwiGLU, Tied<"w">, ReLU, Linear<4>, MSE> {};

/// Whether all copies of a Repeat but the first are alike, and backward made by copies is backward
/// made op by op.
template <class M, int Planes>
void has_equal_copies() {
  constexpr auto const& d = divided<M, Planes>;
  detail::graph_view const g = d.local;
  REQUIRE(g.repetitions.count == 1);
  detail::repetition const r = g.repetitions[0];
  for (int copy = 3; copy < r.copies; ++copy) {
    int const at = g.first_op(r.first + copy * r.units),
              period = at - g.first_op(r.first + (copy - 1) * r.units);
    REQUIRE(at - period - g.first_op(r.first + (copy - 2) * r.units) == period);
    for (int i = at; i < at + period; ++i)
      CHECK(same(detail::next_copy(g.ops[i - 2 * period], g.ops[i - period]), g.ops[i]));
  }
  detail::graph_view one_by_one = g;
  one_by_one.repetitions.count = 0;
  detail::heap_gradients const heap(one_by_one);
  detail::gradient_view const expected = heap;
  constexpr detail::gradient_size size = detail::count_gradients(d.local);
  static constexpr auto made = detail::differentiate<size>(d.local);
  detail::gradient_view const found = made;
  REQUIRE(found.input_ops.count == expected.input_ops.count);
  REQUIRE(found.weight_ops.count == expected.weight_ops.count);
  for (int i = 0; i < expected.input_ops.count; ++i)
    CHECK(same(found.input_ops[i], expected.input_ops[i]));
  for (int i = 0; i < expected.weight_ops.count; ++i)
    CHECK(same(found.weight_ops[i], expected.weight_ops[i]));
}

/// The division op by op, without copies: with a list of readings, all free.
template <class M, int Planes>
void is_divided_op_by_op() {
  static constexpr detail::operand_reading free[M::graph_type::size.ops]{};
  detail::heap_division const heap(M::graph, Planes, free);
  detail::division_view const expected = heap, found = divided<M, Planes>;
  REQUIRE(found.local.ops.count == expected.local.ops.count);
  REQUIRE(found.values.count == expected.values.count);
  for (int i = 0; i < expected.local.ops.count; ++i)
    CHECK(same(found.local.ops[i], expected.local.ops[i]));
  for (int v = 0; v < expected.values.count; ++v) {
    CHECK(found.values[v] == expected.values[v]);
    CHECK(found.local.values[v].elements == expected.local.values[v].elements);
  }
  for (int p = 0; p < expected.parameters.count; ++p) {
    CHECK(found.parameters[p] == expected.parameters[p]);
    CHECK(found.local.parameters[p].form == expected.local.parameters[p].form);
  }
  for (int u = 0; u <= expected.local.units.count; ++u) {
    CHECK(found.local.units[u].first_op == expected.local.units[u].first_op);
    CHECK(found.local.units[u].first_value == expected.local.units[u].first_value);
    CHECK(found.local.units[u].result == expected.local.units[u].result);
  }
}

}  // namespace

TEST_CASE("groups of a convolution are divided, neighbouring columns are not", "[division]") {
  detail::division_view const d = divided<Grouped, 2>;
  CHECK(lines(d, 0, d.local.units.count) == R"(convolution, columns 16 -> columns 16
bias, columns 16 -> columns 16
map -> columns 16
convolution, columns 32 -> columns 32
bias, columns 32 -> columns 32
exchange -> whole
response_norm -> whole
exchange -> columns 32
resample -> columns 32
transpose -> rows
matmul, rows 288 -> partial
exchange -> whole
bias, whole -> whole
cross_entropy -> whole
)");
  has_sizes_of_parts(d);
}

TEST_CASE("a dropout of columns in several runs is whole", "[division]") {
  detail::division_view const d = divided<Flat, 2>;
  CHECK(lines(d, 0, d.local.units.count) == R"(convolution, columns 8 -> columns 8
bias, columns 8 -> columns 8
exchange -> whole
dropout -> whole
exchange -> rows
matmul, rows 128 -> partial
exchange -> whole
bias, whole -> whole
squared_error -> whole
)");
}

TEST_CASE("low-rank pairs are divided as the products to which they are added", "[division]") {
  detail::division_view const d = divided<Adapted, 2>;
  CHECK(lines(d, 1, 2) == R"(norm, replicated, replicated -> rows
exchange -> replicated
matmul, columns 32 -> columns 32
bias, columns 32 -> columns 32
matmul, replicated -> replicated
map -> replicated
matmul, columns 32 -> columns 32
add -> columns 32
map -> columns 32
matmul, rows 32 -> partial
exchange -> rows
bias, replicated -> rows
matmul, rows 32 -> partial
exchange -> rows
map -> rows
matmul, replicated -> rows
add -> rows
add -> rows
)");
}

TEST_CASE("copies of a Repeat are divided alike", "[division]") {
  has_equal_copies<GPT<5>, 2>();
  has_equal_copies<Deep, 2>();
  is_divided_op_by_op<GPT<5>, 2>();
  is_divided_op_by_op<GPT<5>, 4>();
  is_divided_op_by_op<Deep, 2>();
}

TEST_CASE("a weight in two places has one box, or is whole", "[division]") {
  detail::division_view const shared = divided<Shared, 2>;
  CHECK(text(shared.parameters[0]) == "columns 16");
  CHECK(shared.parameters[2] == shared.parameters[0]);
  // The gate wants both halves of the columns divided, the second place all columns as one run.
  detail::division_view const torn = divided<Torn, 2>;
  CHECK(text(torn.parameters[0]) == "whole");
  CHECK(text(torn.parameters[2]) == "whole");
  CHECK(text(torn.parameters[4]) == "columns 4");
}
